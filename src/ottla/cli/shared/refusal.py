"""How a command says no: one sentence with the cause and the next step, and an exit code."""


class CommandRefused(Exception):
    """The command could not do what it was asked; the text is for the user."""

    exit_code = 1


class UsageRefused(CommandRefused):
    """The flags make no sense together."""

    exit_code = 2
