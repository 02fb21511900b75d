"""Conversations of groups with two coordinators, compared field by field."""
