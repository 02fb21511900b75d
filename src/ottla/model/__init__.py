"""Nouns: the things every other package speaks of. No behaviour, no imports from above."""
