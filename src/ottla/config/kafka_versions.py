"""The releases that Kafka 3.9 knows, as its settings name them: ``2.8``, ``2.8.1``, ``2.8-IV1``."""

from functools import cache
from typing import Any

_STEPS = """
0.8.0:0 0.8.1:0 0.8.2:0 0.9.0:0 0.10.0:2 0.10.1:3 0.10.2:1 0.11.0:3 1.0:1 1.1:1 2.0:2 2.1:3 2.2:2 2.3:2 2.4:2
2.5:1 2.6:1 2.7:3 2.8:2 3.0:2 3.1:1 3.2:1 3.3:4 3.4:1 3.5:3 3.6:3 3.7:5 3.8:1 3.9:1
"""
"""Each release, and how many numbered steps led to it."""
_OF_THE_FUTURE = {"4.0-IV0", "4.0-IV1"}


@cache
def _names() -> frozenset[str]:
    releases = [(release, int(steps)) for release, _, steps in (w.partition(":") for w in _STEPS.split())]
    numbered = {f"{release}-IV{step}" for release, steps in releases for step in range(steps)}
    return frozenset({release for release, _ in releases} | numbered | _OF_THE_FUTURE)


def why_no_version(value: Any) -> str | None:
    """What is wrong with the name of a release, in words; its patch number does not matter."""
    text = str(value)
    significant = 3 if text.startswith("0.") else 2
    release = ".".join(text.split(".")[:significant])
    return None if release in _names() else f"Version {text} is not a valid version"
