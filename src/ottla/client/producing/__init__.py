"""The producer's core: which partition, which batch, which attempt."""
