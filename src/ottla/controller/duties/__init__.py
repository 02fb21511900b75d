"""What a controller does, one file a duty."""
