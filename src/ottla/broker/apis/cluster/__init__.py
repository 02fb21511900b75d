"""Handlers that describe the cluster."""
