"""Transactions: who writes under which epoch, what a transaction covers, and how it ends. Pure."""
