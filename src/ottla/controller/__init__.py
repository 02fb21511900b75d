"""Who leads: the pure half of the controller. Facts come in as events, commands go out as effects."""
