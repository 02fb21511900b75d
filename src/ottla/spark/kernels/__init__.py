"""Compiled kernels between Arrow columns and record batches."""
