"""Reading: offsets by time, fetching by assignment, batches into records."""
