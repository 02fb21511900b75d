"""axe-core finds nothing serious on any page, nor colours too faint in the dark."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration.console.test_in_a_browser import PATHS, WIDE
from support.client.browser import opened
from support.processes.lab import built_once, lab_dir, require_command

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PACKAGE = "axe-core@4.10.3"
SHA256 = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb"
"""Of the script in that package."""
FOUND = """async rules => (await axe.run(rules ? {runOnly: rules} : {})).violations
    .filter(one => ["serious", "critical"].includes(one.impact))
    .map(one => one.id + ": " + one.nodes.map(node => node.target.join(" ")).join(", "))"""


def axe() -> str:
    """The script, fetched into the lab once; it is never shipped."""
    npm = require_command("npm")

    def build(target: Path) -> None:
        subprocess.run([npm, "pack", PACKAGE], check=True, capture_output=True, cwd=target)
        (archive,) = target.glob("*.tgz")
        subprocess.run(["tar", "-xzf", archive, "package/axe.min.js"], check=True, cwd=target)

    script = built_once(lab_dir() / PACKAGE.replace("@", "-"), build) / "package" / "axe.min.js"
    text = script.read_bytes()
    assert hashlib.sha256(text).hexdigest() == SHA256, f"{script} is not what npm published"
    return text.decode()


@pytest.mark.full("axe-core looks at every page")
@pytest.mark.parametrize(("scheme", "rules"), [("light", None), ("dark", ["color-contrast"])])
def test_nothing_serious_stands_in_anybodys_way(
    browser: Browser, address: str, scheme: str, rules: list[str] | None
) -> None:
    script = axe()
    with opened(browser, address, color_scheme=scheme, viewport=WIDE) as seen:
        for path in PATHS:
            page = seen.go(path)
            page.evaluate(script)
            assert page.evaluate(FOUND, rules) == [], path
