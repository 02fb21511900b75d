"""What the log stores of groups: keys and values, committed offsets, offsets of open transactions."""
