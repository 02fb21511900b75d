"""The other edge: the same broker objects in a simulated world, from a seed, in virtual time."""
