"""Commands about the content of partitions: offsets, records, directories, replicas."""
