"""A password in memory, which no log line and no ``repr`` shows."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that is shown to nobody; whoever needs it says ``text``."""

    text: str = field(repr=False)

    def __str__(self) -> str:
        return "[hidden]"

    def __bool__(self) -> bool:
        return bool(self.text)
