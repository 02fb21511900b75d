"""Who may do what, told to people."""
