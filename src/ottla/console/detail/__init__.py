"""Pages of single things: topics, brokers, settings, records; the last two ask the cluster when opened."""
