"""Conversations about transactions, held with two kinds of coordinators."""
