"""Writes ``requirements.lock`` out of what ``.venv`` holds now: run it after a tested change of versions."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Exact versions of all that Ottla and its tests use, as tested; tools/lock.py writes this file.\n"


def main() -> None:
    """Everything installed except Ottla itself and what the build lock already names."""
    build = {line.partition("==")[0] for line in (ROOT / "requirements-build.lock").read_text().splitlines()}
    frozen = subprocess.run(
        [sys.executable, "-m", "pip", "freeze", "--exclude-editable", "--local"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.splitlines()
    kept = [line for line in frozen if "==" in line and line.partition("==")[0] not in build]
    (ROOT / "requirements.lock").write_text(HEADER + "".join(f"{line}\n" for line in kept))
    print(f"requirements.lock: {len(kept)} packages")


if __name__ == "__main__":
    main()
