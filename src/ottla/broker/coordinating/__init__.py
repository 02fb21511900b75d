"""Being a coordinator: shards of internal topics that this broker leads."""
