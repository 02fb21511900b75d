"""Followers: fetch from the leader, truncate, append."""
