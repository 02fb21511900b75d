"""The name under which Spark discovers Ottla's data source."""
