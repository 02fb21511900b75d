"""Members of consumer groups as programs, one per kind of client, all saying the same lines."""
