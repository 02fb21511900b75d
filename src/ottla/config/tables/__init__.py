"""Every setting in tables: name, type, default, limits, where it may change, and what it means."""
