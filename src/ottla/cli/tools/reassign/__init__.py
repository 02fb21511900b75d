"""Commands that move replicas and leaders."""
