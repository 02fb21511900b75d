"""Words that nobody guesses stay out of the code; ``docs/map.md`` says which ones we use instead."""

from __future__ import annotations

import re

from architecture.sources import PACKAGE

INSTEAD = {
    "asker": "a task's owner",
    "desk": "the thing by its work: session, reader, queue",
    "homeless": "without a partition yet",
    "portion": "slice",
    "soundness": "validity",
    "telling": "what is printed or sent",
    "wish": "what is wanted or asked for",
}
"""The beginning of a word, in a name or in prose, and what to say."""

STILL_THERE = {
    "portion": {"broker", "coordinator", "storage"},
    "wish": {"broker"},
}
"""Packages that have yet to lose the word. Shorten this list; never lengthen it."""

WORD = re.compile(r"[A-Z]?[a-z]+")


def words_of(text: str) -> set[str]:
    """The words of prose and names: ``ZkDesk`` and ``in_portions`` have two each."""
    return {word.lower() for word in WORD.findall(text)}


def test_words_nobody_guesses_stay_away() -> None:
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE)
        words = words_of(" ".join([*place.parts, file.read_text(encoding="utf-8")]))
        for stem, instead in INSTEAD.items():
            if place.parts[0] not in STILL_THERE.get(stem, ()) and any(
                word.startswith(stem) for word in words
            ):
                found.append(f"{place}: {stem!r}, say {instead}")

    assert found == []
