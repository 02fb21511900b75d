"""What is sent to open pages when the picture changes."""
