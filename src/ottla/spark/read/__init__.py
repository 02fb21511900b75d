"""Reading: batch and stream."""
