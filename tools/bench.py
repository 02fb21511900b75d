"""``make bench``: runs the benchmarks under ``bench/``, or those whose name holds a word."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"


def main(words: list[str]) -> int:
    """Run each benchmark as a program of its own; exit code 1 when one of them failed or missed its bar."""
    programs = [file for file in sorted(BENCH.rglob("*.py")) if is_program(file)]
    chosen = [file for file in programs if all(word in str(file.relative_to(BENCH)) for word in words)]
    if not chosen:
        names = ", ".join(str(file.relative_to(BENCH)) for file in programs) or "none yet"
        print(f"make bench: no benchmark of that name; there are: {names}")
        return 1
    failed = []
    for file in chosen:
        name = str(file.relative_to(ROOT))
        print(f"--- {name}", flush=True)
        if subprocess.run([sys.executable, file], cwd=ROOT, check=False).returncode != 0:
            failed.append(name)
    print(f"make bench: {len(chosen)} run, {len(failed)} failed" + "".join(f"\n  {name}" for name in failed))
    return 1 if failed else 0


def is_program(file: Path) -> bool:
    """Whether a file is a benchmark and not a helper of one."""
    return not file.name.startswith("_") and '__name__ == "__main__"' in file.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
