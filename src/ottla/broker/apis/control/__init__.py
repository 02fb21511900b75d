"""Handlers of requests between the controller and the brokers."""
