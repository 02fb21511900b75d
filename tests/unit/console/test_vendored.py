"""The browser libraries are what npm published, and nothing asks another site for any."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ottla.console.render import HERE

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
import vendor


def test_each_library_has_the_hash_that_is_written_down() -> None:
    assert vendor.faults() == []


def test_a_changed_a_missing_and_an_unknown_file_are_each_named(tmp_path: Path) -> None:
    (tmp_path / "htmx.min.js").write_text("other")
    (tmp_path / "more.js").write_text("")

    assert vendor.faults(tmp_path) == [
        "htmx.LICENSE is missing",
        "more.js is listed nowhere",
        "htmx.min.js is not what npm published",
    ]


def test_our_own_files_name_no_other_site_and_carry_no_inline_script() -> None:
    own = [*(HERE / "templates").iterdir(), *(HERE / "static").glob("*.*")]

    for file in own:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|<script>|\son\w+=|style=", text), file.name
