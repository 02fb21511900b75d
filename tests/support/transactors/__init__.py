"""Transactional producers of every kind as programs, driven by commands."""
