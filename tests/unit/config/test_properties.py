"""Java's properties format."""

import pytest

from ottla.config.properties import parse_properties, properties_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2\nc:3\nd 4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# comment\n! another\n\n   \nx=y", {"x": "y"}),
        ("list=one,\\\n     two,\\\n     three", {"list": "one,two,three"}),
        ("path=C:\\\\dir\\\\file", {"path": "C:\\dir\\file"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\ b\\:c = d", {"a b:c": "d"}),
        ("tab=x\\ty\\nz", {"tab": "x\ty\nz"}),
        ("u=\\u00e9\\u20AC", {"u": "é€"}),
        ("u=\\ud83d\\ude80 \\ud83d!", {"u": "\U0001f680 \ufffd!"}),
        ("empty=\nbare", {"empty": "", "bare": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=trailing blanks  ", {"a": "trailing blanks  "}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=\\\n# no comment", {"a": "# no comment"}),
        ("end=\\", {"end": ""}),
        ("", {}),
    ],
)
def test_what_java_reads_is_read(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_what_is_written_is_read_again() -> None:
    properties = {"log.dirs": "/back\\slash\\", "blank": " x ", "lines": "a\nb\tc", "none": "", "k": "=:#"}

    assert parse_properties(properties_text(properties)) == properties
