"""Consumer groups from the member's side: join, assign partitions as leader, commit."""
