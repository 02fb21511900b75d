"""The pipeline that people run: each job a small module over the data source.

A job is a function ``run(spark, options, progress) -> Report``; ``check(options)`` refuses, before Spark is
started, what can be seen to be wrong without it. Its options are a frozen dataclass beside them.
Only ``plan`` and ``availability`` need no Spark, and get none.
"""

JOBS: dict[str, str] = {
    "archive": "topics into partitioned Parquet, each record once",
    "lake": "topics into a Delta or Iceberg table, each record once, without jars",
    "replay": "Parquet of an archive back into a topic, in order per partition",
    "validate": "JSON records against a schema; bad ones with their cause to a dead-letter topic",
    "aggregate": "counts and sums per time window, from topic to topic",
    "losses": "what unclean elections took, who has read it, and the archived records written back",
    "audit": "every replica of every partition compared, batch by batch",
    "elections": "who was elected, why, and how long partitions had no leader",
    "availability": "how long partitions had no leader or too few replicas in sync, by cause",
    "hot": "bytes by partition, key and time, as weights for plan, too",
    "plan": "a reassignment that evens out leaders and bytes with few moves",
}
