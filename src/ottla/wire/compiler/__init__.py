"""Writes the functions that encode and decode one message in one version."""
