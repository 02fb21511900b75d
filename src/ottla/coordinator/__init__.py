"""Coordinators: requests and deadlines become records and replies, records become state. Pure."""
