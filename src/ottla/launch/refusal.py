"""The one exception of this package: something on this machine prevents the start."""


class LaunchRefused(Exception):
    """A process cannot be started or kept; the text is one sentence with cause and next step."""
