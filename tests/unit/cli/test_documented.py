"""How documents are held against what commands print."""

from __future__ import annotations

from pathlib import Path

from support.running.documented import commands_of, missing


def test_commands_come_with_the_lines_below_them(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("```\n$ not this\n```\n\n```console\n$ one\nsaid\n\n$ two | sort\n```\n")

    assert [(typed.command, typed.shown) for typed in commands_of(document)] == [
        ("one", ["said"]),
        ("two | sort", []),
    ]


def test_numbers_blanks_and_dots_may_differ_and_words_may_not() -> None:
    printed = "broker 17:  process 99\nled by broker 2 since 12:00 (epoch 4)\n"

    assert missing(["broker 1: process 2", "led by broker 0 since ... (epoch 0)"], printed) == []
    assert missing(["broker 1"], printed) == []
    assert missing(["Broker 1"], printed) == ["Broker 1"]


def test_lines_must_come_in_their_order() -> None:
    assert missing(["b", "a"], "a\nb\n") == ["a"]
