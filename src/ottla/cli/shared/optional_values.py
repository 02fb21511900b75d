"""Flags whose value may be left out, as some of Kafka's may."""

from typing import Any, ClassVar

from typer.core import TyperCommand


class OptionalValues(TyperCommand):
    """A command that gives such flags their stand-in when the next word is a flag, or the end."""

    stand_ins: ClassVar[dict[str, str]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_stand_ins(args, self.stand_ins))


def with_stand_ins(args: list[str], stand_ins: dict[str, str]) -> list[str]:
    """The words with the missing values filled in."""
    filled: list[str] = []
    for position, word in enumerate(args):
        is_last = position + 1 == len(args)
        is_bare = word in stand_ins and (is_last or args[position + 1].startswith("--"))
        filled.append(f"{word}={stand_ins[word]}" if is_bare else word)
    return filled
