"""The questions of a login, one function each: the same to every broker, and what it said."""

from __future__ import annotations

from collections.abc import Callable

from support.security.broker import ALICE, ALICES_PASSWORD, BOB, BOBS_PASSWORD
from support.security.talk import ByHand, Said, Talk

Row = Callable[[Talk], list[Said]]
PASSWORD = "scram-secret"
"""Of the users ``carol`` (SCRAM-SHA-256) and ``dave`` (both)."""


def plain(token: str, version: int = 2, handshake: str = "PLAIN") -> Row:
    return lambda talk: [talk.handshake(handshake), talk.authenticate(token.encode(), version), talk.fate()]


def scram(mechanism: str, user: str, password: str = PASSWORD, gs2: str = "n,,") -> Row:
    def row(talk: Talk) -> list[Said]:
        by_hand = ByHand(mechanism, user, password)
        said = [talk.handshake(mechanism), talk.authenticate(by_hand.first(gs2))]
        if talk.token:
            said += [talk.authenticate(by_hand.final(talk.token)), str(talk.token == by_hand.signature)]
        return [*said, talk.fate()]

    return row


def scram_with_another_nonce(change: Callable[[str], str]) -> Row:
    def row(talk: Talk) -> list[Said]:
        by_hand = ByHand("SCRAM-SHA-256", "carol", PASSWORD)
        said = [talk.handshake("SCRAM-SHA-256"), talk.authenticate(by_hand.first())]
        nonce = talk.token.decode().split(",")[0].removeprefix("r=")
        return [*said, talk.authenticate(by_hand.final(talk.token, change(nonce))), talk.fate()]

    return row


def _again(user: str, password: str, mechanism: str = "PLAIN") -> Row:
    def row(talk: Talk) -> list[Said]:
        token = f"\0{user}\0{password}".encode()
        return [
            talk.log_in(),
            talk.metadata(),
            talk.handshake(mechanism),
            talk.authenticate(token),
            talk.fate(),
        ]

    return row


GOOD = f"\0{ALICE}\0{ALICES_PASSWORD}"
GOOD_TOKEN = GOOD.encode()

OF_THE_SEQUENCE: dict[str, Row] = {
    "a request before the login": lambda talk: [talk.metadata(), talk.fate()],
    "versions, handshake, login": lambda talk: [talk.versions(), talk.log_in(), talk.versions(), talk.fate()],
    "versions twice": lambda talk: [talk.versions(), talk.versions(), talk.fate()],
    "versions beyond, then good": lambda talk: [
        talk.versions(99),
        talk.versions(),
        talk.log_in(),
        talk.fate(),
    ],
    "versions by a bad name": lambda talk: [talk.versions(name="-bad-"), talk.log_in(), talk.fate()],
    "versions 0": lambda talk: [talk.versions(0), talk.log_in(), talk.fate()],
    "unknown mechanism": lambda talk: [talk.handshake("NOPE"), talk.fate()],
    "mechanism that is not enabled": lambda talk: [talk.handshake("GSSAPI"), talk.fate()],
    "mechanism in lower case": lambda talk: [talk.handshake("plain"), talk.fate()],
    "another request for a token": lambda talk: [talk.handshake("PLAIN"), talk.metadata(4), talk.fate()],
    "versions for a token": lambda talk: [talk.handshake("PLAIN"), talk.versions(), talk.fate()],
    "bare token, good": lambda talk: [talk.handshake("PLAIN", 0), talk.frame(GOOD_TOKEN), talk.fate()],
    "bare token, bad": lambda talk: [talk.handshake("PLAIN", 0), talk.frame(b"\0alice\0no"), talk.fate()],
    "too large before the login": lambda talk: [talk.bytes((524_289).to_bytes(4, "big") + bytes(100))],
    "as large as may be": lambda talk: [talk.frame(bytes(524_288))],
    "HTTP": lambda talk: [talk.bytes(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")],
    "a TLS client": lambda talk: [talk.bytes(bytes.fromhex("160301020001000001fc0303") + bytes(500))],
    "no request at all": lambda talk: [talk.frame(b"\xff\xff\xff\xff\x00"), talk.fate()],
    "an unknown API": lambda talk: [talk.frame(b"\x7f\xff\x00\x00\x00\x00\x00\x01\xff\xff"), talk.fate()],
    "handshake and login once more": lambda talk: [
        talk.log_in(),
        talk.handshake("PLAIN"),
        talk.authenticate(GOOD_TOKEN),
        talk.fate(),
    ],
}

OF_PLAIN: dict[str, Row] = {
    "good, version 0": plain(GOOD, 0),
    "good, version 1": plain(GOOD, 1),
    "good, version 2": plain(GOOD, 2),
    "wrong password": plain(f"\0{ALICE}\0wrong"),
    "unknown user": plain("\0nobody\0wrong"),
    "empty user": plain("\0\0wrong"),
    "empty password": plain(f"\0{ALICE}\0"),
    "one token": plain("alice"),
    "two tokens": plain(f"{ALICE}\0{ALICES_PASSWORD}"),
    "four tokens": plain(f"\0{ALICE}\0{ALICES_PASSWORD}\0"),
    "other authorization id": plain(f"{BOB}\0{ALICE}\0{ALICES_PASSWORD}"),
    "own authorization id": plain(f"{ALICE}\0{ALICE}\0{ALICES_PASSWORD}"),
    "not UTF-8": lambda talk: [talk.handshake("PLAIN"), talk.authenticate(b"\0\xff\xfe\0x"), talk.fate()],
}

OF_SCRAM: dict[str, Row] = {
    "SCRAM-SHA-256": scram("SCRAM-SHA-256", "carol"),
    "SCRAM-SHA-512": scram("SCRAM-SHA-512", "dave"),
    "SCRAM-SHA-256 of both": scram("SCRAM-SHA-256", "dave"),
    "a mechanism that the user lacks": scram("SCRAM-SHA-512", "carol"),
    "wrong password": scram("SCRAM-SHA-256", "carol", "wrong"),
    "unknown user": scram("SCRAM-SHA-256", "nobody"),
    "a nonce of our own": scram_with_another_nonce(lambda nonce: "clientnonce"),
    "a longer nonce": scram_with_another_nonce(lambda nonce: nonce + "x"),
    "a cut nonce": scram_with_another_nonce(lambda nonce: nonce[:-1]),
    "channel binding y": scram("SCRAM-SHA-256", "carol", gs2="y,,"),
    "channel binding p": scram("SCRAM-SHA-256", "carol", gs2="p=tls-unique,,"),
    "other authorization id": scram("SCRAM-SHA-256", "carol", gs2="n,a=dave,"),
    "own authorization id": scram("SCRAM-SHA-256", "carol", gs2="n,a=carol,"),
    "other authorization id of nobody": scram("SCRAM-SHA-256", "nobody", gs2="n,a=dave,"),
    "a name that is not ASCII": scram("SCRAM-SHA-256", "käthe"),
    "an escaped name": scram("SCRAM-SHA-256", "a=2Cb=3Dc"),
    "a comma without its escape": scram("SCRAM-SHA-256", "a,b"),
    "too few iterations": scram("SCRAM-SHA-256", "weak"),
    "an extension": scram("SCRAM-SHA-256", "carol,r=x,ext=1"),
    "a delegation token's login": scram("SCRAM-SHA-256", "carol,r=x,tokenauth=true"),
    "an empty token": lambda talk: [talk.handshake("SCRAM-SHA-256"), talk.authenticate(b""), talk.fate()],
}

OF_LIFETIMES: dict[str, Row] = {
    "lifetime told": lambda talk: [talk.log_in(), talk.fate()],
    "not to version 0": lambda talk: [talk.log_in(version=0), talk.fate()],
    "again as the same": _again(ALICE, ALICES_PASSWORD),
    "again with a wrong password": _again(ALICE, "wrong"),
    "again as somebody else": _again(BOB, BOBS_PASSWORD),
    "again with another mechanism": _again(ALICE, ALICES_PASSWORD, "SCRAM-SHA-256"),
    "again with an unknown mechanism": lambda talk: [talk.log_in(), talk.handshake("NOPE"), talk.fate()],
    "again, and a request between": lambda talk: [
        talk.log_in(),
        talk.handshake("PLAIN"),
        talk.metadata(4),
        talk.fate(),
    ],
    "tokens without a handshake": lambda talk: [talk.log_in(), talk.authenticate(GOOD_TOKEN), talk.fate()],
}
