"""Who a client is, and what it may do: the schemes world, auth, digest, ip and super."""

import base64
import hashlib
import re
from typing import Final

from ottla.zookeeper.ops import OPEN, Acl

READ: Final = 1
WRITE: Final = 2
CREATE: Final = 4
DELETE: Final = 8
ADMIN: Final = 16

Identity = tuple[str, str]
"""A scheme, and the name under which it knows a client."""


def may(acl: tuple[Acl, ...], permission: int, identities: list[Identity]) -> bool:
    """Whether a list gives one of these identities the permission; an empty list gives everybody all."""
    if acl is OPEN or not acl or any(scheme == "super" for scheme, _ in identities):
        return True
    for entry in acl:
        if not entry.permissions & permission:
            continue
        if entry.scheme == "world" and entry.identity == "anyone":
            return True
        for scheme, name in identities:
            if scheme == entry.scheme and _matches(scheme, name, entry.identity):
                return True
    return False


def resolve(acl: tuple[Acl, ...] | None, identities: list[Identity]) -> tuple[Acl, ...] | None:
    """The list as it is stored, ``auth`` replaced by the client's own logins; ``None`` if it is not valid."""
    resolved: list[Acl] = []
    for entry in dict.fromkeys(acl or ()):
        if entry.scheme == "world" and entry.identity == "anyone":
            resolved.append(entry)
        elif entry.scheme == "auth":
            logins = [(scheme, name) for scheme, name in identities if scheme == "digest"]
            if not logins:
                return None
            resolved += [Acl(entry.permissions, scheme, name) for scheme, name in logins]
        elif _is_valid(entry.scheme, entry.identity):
            resolved.append(entry)
        else:
            return None
    return tuple(resolved) or None


def log_in(scheme: str, credential: bytes, address: str, super_digest: str) -> list[Identity] | None:
    """The identities that a login adds to a connection; ``None`` if it is refused."""
    if scheme == "ip":
        return [("ip", address)]
    if scheme != "digest":
        return None
    text = credential.decode(errors="replace")
    hashed = hashlib.sha1(text.encode(), usedforsecurity=False).digest()
    digest = f"{text.partition(':')[0]}:{base64.b64encode(hashed).decode('ascii')}"
    own: list[Identity] = [("digest", digest)]
    return [("super", ""), *own] if super_digest and digest == super_digest else own


def masked(acl: tuple[Acl, ...]) -> tuple[Acl, ...]:
    """A list without what is secret in it, for those who may read a node and not administer it."""
    return tuple(
        Acl(entry.permissions, entry.scheme, re.sub(":.*", ":x", entry.identity))
        if entry.scheme == "digest"
        else entry
        for entry in acl
    )


def user_of(identity: Identity) -> str:
    """What ``whoAmI`` calls an identity."""
    scheme, name = identity
    return name.partition(":")[0] if scheme == "digest" else name


def _is_valid(scheme: str, identity: str) -> bool:
    if scheme == "digest":
        parts = identity.split(":")
        while parts and not parts[-1]:
            parts.pop()
        return len(parts) == 2
    return scheme == "ip" and _network(identity) is not None


def _matches(scheme: str, name: str, expression: str) -> bool:
    if scheme == "digest":
        return name == expression
    if scheme != "ip":
        return False
    network, own = _network(expression), _address(name)
    if network is None or own is None or len(network[0]) != len(own):
        return False
    address, bits = network
    kept = len(own) * 8 - bits
    return int.from_bytes(address, "big") >> kept == int.from_bytes(own, "big") >> kept


def _network(text: str) -> tuple[bytes, int] | None:
    """An address and how many of its bits count: ``10.0.0.0/8``."""
    host, slash, rest = text.partition("/")
    address = _address(host)
    if address is None:
        return None
    bits = len(address) * 8
    if not slash:
        return address, bits
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", rest) or not 0 <= int(rest) <= bits:
        return None
    return address, int(rest)


def _address(text: str) -> bytes | None:
    if ":" in text:
        return _address_of_six(text)
    parts = text.split(".")
    if len(parts) != 4 or not all(re.fullmatch(r"\+?[0-9]{1,9}", part) for part in parts):
        return None
    numbers = [int(part) for part in parts]
    return bytes(numbers) if max(numbers) <= 255 else None


def _address_of_six(text: str) -> bytes | None:
    halves = [half.split(":") if half else [] for half in text.split("::")]
    count = sum(map(len, halves))
    if len(halves) > 2 or (count != 8 if len(halves) == 1 else count >= 8):
        return None
    if not all(re.fullmatch("[0-9a-fA-F]{1,4}", group) for half in halves for group in half):
        return None
    first = b"".join(int(group, 16).to_bytes(2, "big") for group in halves[0])
    last = b"".join(int(group, 16).to_bytes(2, "big") for half in halves[1:] for group in half)
    return first + bytes(16 - len(first) - len(last)) + last
