"""Topics into tables, each record once: tasks write Parquet, and the driver commits it with the offsets."""
