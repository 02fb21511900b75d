"""Options of reads and writes, and the columns."""
