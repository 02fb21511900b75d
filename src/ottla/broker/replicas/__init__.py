"""The partitions hosted here: logs, leadership, ISR, housekeeping."""
