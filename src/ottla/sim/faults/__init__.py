"""What goes wrong, and what operators do meanwhile."""
