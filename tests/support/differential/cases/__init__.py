"""The requests, grouped by what they ask for."""
