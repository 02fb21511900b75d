"""Writing: sinks, delivery, encoding."""
