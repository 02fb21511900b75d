"""Consumer groups: members, generations, assignments, committed offsets."""
