"""Checks the browser libraries under ``src/ottla/console/static/vendor`` against the hashes that npm signs.

With ``--fetch`` it brings them from npm: the archive must have the hash below, and so must each file of it.
"""

import base64
import hashlib
import io
import sys
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "src" / "ottla" / "console" / "static" / "vendor"
REGISTRY = "https://registry.npmjs.org"


@dataclass(frozen=True, slots=True)
class Vendored:
    """One library: npm's name and version, the archive's hash as npm gives it, and the files we ship."""

    name: str
    version: str
    integrity: str
    files: dict[str, tuple[str, str]]
    """Our name of each file: its place in the archive, and its SHA-256."""

    @property
    def archive(self) -> str:
        return f"{REGISTRY}/{self.name}/-/{self.name}-{self.version}.tgz"


LIBRARIES = (
    Vendored(
        "htmx.org",
        "4.0.1",
        "sha512-oF7JgXhDW9UXCy/k1ZYFUQgzu/rm19ORWPSPNL91vPluB2PB9+MV55tyQdH/w7o2EAbTYUG5SDW1R60mdkdqGg==",
        {
            "htmx.min.js": (
                "package/dist/htmx.min.js",
                "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
            ),
            "htmx.LICENSE": (
                "package/LICENSE",
                "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
            ),
        },
    ),
)


def faults(directory: Path = VENDOR) -> list[str]:
    """What is missing, changed or not listed, in words."""
    wanted = {name: sha for library in LIBRARIES for name, (_, sha) in library.files.items()}
    found = {file.name: file.read_bytes() for file in directory.iterdir() if file.is_file()}
    said = [f"{name} is missing" for name in sorted(wanted.keys() - found.keys())]
    said += [f"{name} is listed nowhere" for name in sorted(found.keys() - wanted.keys())]
    return said + [
        f"{name} is not what npm published"
        for name, content in sorted(found.items())
        if name in wanted and hashlib.sha256(content).hexdigest() != wanted[name]
    ]


def fetch(library: Vendored) -> None:
    """Bring one library's files, if the archive is the one that npm signed."""
    with urllib.request.urlopen(library.archive) as answer:
        content = answer.read()
    digest = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    if digest != library.integrity:
        sys.exit(f"vendor: {library.archive} has the hash {digest}, not {library.integrity}")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for name, (place, _) in library.files.items():
            member = archive.extractfile(place)
            assert member is not None, f"{place} is a file"
            (VENDOR / name).write_bytes(member.read())


def main() -> None:
    """Fetch if asked to, then check."""
    if "--fetch" in sys.argv[1:]:
        VENDOR.mkdir(exist_ok=True)
        for library in LIBRARIES:
            fetch(library)
    if said := faults():
        sys.exit("vendor: " + "; ".join(said) + "; `tools/vendor.py --fetch` brings what is listed")
    print(f"vendor: {len(LIBRARIES)} libraries are what npm published")


if __name__ == "__main__":
    main()
