"""Record batches: read, build, compress and judge them, without any input or output."""
