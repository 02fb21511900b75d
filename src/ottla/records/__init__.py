"""Record batches: read, build, compress and validate them, without any input or output."""
