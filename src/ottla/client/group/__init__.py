"""Consumer groups from the member's side: joining, leading, sharing out, committing."""
