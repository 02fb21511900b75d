"""What the documents say about files, commands and targets is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.sources import PACKAGE, ROOT, shown
from ottla.cli.main import COMMANDS

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
WRITTEN = [document for document in DOCUMENTS if not document.is_relative_to(ROOT / "docs" / "reference")]
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
A_PATH = re.compile(r"^[\w.-]+(/[\w.-]+)+/?$|^[\w-]+\.(py|md|toml|lock|txt)$")
FUNCTION = re.compile(r"`(\w+)\(\)`")
DEFINED = re.compile(r"\bdef (\w+)\(")
MADE_LATER = {".venv", ".lab", "ottla-data"}
MAKE_COMMAND = re.compile(r"\bmake ([a-z]+)\b")


def paths_named_in(document: Path) -> list[str]:
    """What looks like a path of ours between backticks."""
    spans = CODE.findall(FENCED.sub("", document.read_text(encoding="utf-8")))
    return [span for span in spans if A_PATH.match(span) and span.split("/")[0] not in MADE_LATER]


def exists(path: str, document: Path) -> bool:
    """Paths are meant from the clone's root, from the package, or from the document."""
    return any((base / path).exists() for base in (ROOT, PACKAGE, ROOT / "tests", document.parent))


def commands_in(document: Path) -> list[str]:
    """The lines of the fenced blocks and the code spans: what a reader may type."""
    text = document.read_text(encoding="utf-8")
    return [line for block in FENCED.findall(text) for line in block.splitlines()] + CODE.findall(text)


@pytest.mark.parametrize("document", WRITTEN, ids=shown)
def test_paths_named_exist(document: Path) -> None:
    assert [path for path in paths_named_in(document) if not exists(path, document)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_links_lead_somewhere(document: Path) -> None:
    targets = LINK.findall(document.read_text(encoding="utf-8"))
    inside = [target for target in targets if "://" not in target and not target.startswith("mailto:")]

    assert [target for target in inside if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", WRITTEN, ids=shown)
def test_make_targets_named_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {target for command in commands_in(document) for target in MAKE_COMMAND.findall(command)}

    assert named - targets == set()


@pytest.mark.parametrize("document", WRITTEN, ids=shown)
def test_commands_named_exist(document: Path) -> None:
    typed = [command.strip().removeprefix(".venv/bin/").split() for command in commands_in(document)]
    named = {words[1] for words in typed if len(words) > 1 and words[0] == "ottla" and words[1][0].isalpha()}

    assert named - set(COMMANDS) == set()


def test_the_map_names_every_package() -> None:
    text = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    packages = [entry.name for entry in PACKAGE.iterdir() if (entry / "__init__.py").exists()]

    assert [name for name in packages if f"`{name}/`" not in text] == []


@pytest.mark.parametrize("package", ["broker", "storage"])
def test_the_map_names_every_room(package: str) -> None:
    text = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    rooms = [file.parent for file in (PACKAGE / package).glob("*/__init__.py")]

    assert [room.name for room in rooms if f"`{package}/{room.name}/`" not in text] == []


def test_functions_named_in_the_walks_exist() -> None:
    walks = "".join(walk.read_text(encoding="utf-8") for walk in (ROOT / "docs" / "walks").glob("*.md"))
    defined = {
        name for file in PACKAGE.rglob("*.py") for name in DEFINED.findall(file.read_text(encoding="utf-8"))
    }

    assert [name for name in FUNCTION.findall(walks) if name not in defined] == []


def test_help_lists_every_target() -> None:
    shown_help = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony

    assert [target for target in phony[1].split() if f"make {target} " not in shown_help] == []


def test_generated_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "docs.py", "--check"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["CHANGELOG.md", "docs/proof.md"])
def test_pages_that_tend_to_grow_stay_readable(name: str) -> None:
    assert len((ROOT / name).read_bytes()) <= 8 * 1024
