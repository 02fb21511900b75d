"""Start-up, registration, shutdown."""
