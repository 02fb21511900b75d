"""Clients: their connections, their requests, and requests that wait for an answer."""
