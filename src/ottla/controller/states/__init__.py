"""States of partitions and replicas, and how they change."""
