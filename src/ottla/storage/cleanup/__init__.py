"""Remove old records: retention and compaction."""
