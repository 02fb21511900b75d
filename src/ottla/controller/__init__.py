"""Who leads: the pure half of the controller. Facts come in as events, orders go out as effects."""
