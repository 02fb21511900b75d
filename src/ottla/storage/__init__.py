"""The log on disk, in Kafka's own files. Synchronous, and all through the ``Disk`` port."""
