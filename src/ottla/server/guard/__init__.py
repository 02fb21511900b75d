"""The session of a broker whose process is dead: its guard ends it at once, or else the next start does."""
