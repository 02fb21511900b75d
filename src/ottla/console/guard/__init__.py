"""Who may ask the console, and what browsers are told about its answers."""
