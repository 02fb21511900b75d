"""A cluster on this machine that runs in the background, and faults to play with."""
