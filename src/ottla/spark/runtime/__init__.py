"""Processes of a Spark session: Java, Python workers, their connections."""
