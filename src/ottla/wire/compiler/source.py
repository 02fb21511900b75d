"""The source text of a codec while it is written: lines, fresh names, and the values they refer to."""

import struct
from typing import Any

from ottla.wire.fields import Message


class Source:
    """Lines of one generated module, and its global names."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.lines: list[str] = []
        self.names = dict(names)
        self.indent = 0
        self._fresh = 0

    def line(self, text: str) -> None:
        """One line at the present depth."""
        self.lines.append("    " * self.indent + text)

    def fresh(self, stem: str) -> str:
        """A name that nothing else has."""
        self._fresh += 1
        return f"{stem}_{self._fresh}"

    def constant(self, stem: str, value: Any) -> str:
        """A global name for a value."""
        name = self.fresh(stem)
        self.names[name] = value
        return name

    def packer(self, letters: str) -> str:
        """A global name for the packing of these fixed-width fields."""
        return self._shared(f"pack_{letters.replace('?', 'Z')}", lambda: struct.Struct(f">{letters}").pack)

    def unpacker(self, letters: str) -> str:
        """A global name for the unpacking of these fixed-width fields."""
        return self._shared(
            f"unpack_{letters.replace('?', 'Z')}", lambda: struct.Struct(f">{letters}").unpack_from
        )

    def _shared(self, name: str, make: Any) -> str:
        if name not in self.names:
            self.names[name] = make()
        return name

    def compile(self, message: type[Message], version: int, function: str) -> Any:
        """Run the lines and hand out one of their functions."""
        text = "\n".join(self.lines)
        exec(compile(text, f"<{function} {message.__name__} v{version}>", "exec"), self.names)  # noqa: S102
        return self.names[function]
