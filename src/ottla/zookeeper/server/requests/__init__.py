"""One request after another: its bytes, who may ask it, what it reads, and which transaction it becomes."""
