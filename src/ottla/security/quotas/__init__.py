"""Client quotas: which one holds for whom, and how long who exceeds it must wait; pure."""
