"""Key stores and trust stores, from a file's bytes to PEM: PEM itself, Java's JKS, and PKCS12.

A store says by its first bytes what it is, and Java's own loader goes by them too: the type that the settings
name counts only as far as Kafka makes rules of it (a PEM store has no password).
"""

import base64
import hmac
import re
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Final

from ottla.security.secret import Secret

_JKS: Final = bytes.fromhex("feedfeed")
_JCEKS: Final = bytes.fromhex("cececece")
_JKS_SALT: Final = b"Mighty Aphrodite"
_JKS_DIGEST_BYTES: Final = 20
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.+?-----END \1PRIVATE KEY-----", re.DOTALL)


class BadStore(ValueError):
    """The store cannot be used; the text says why, and quotes no secret."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key and its certificates, the own one first."""

    key: bytes = field(repr=False)
    certificates: bytes
    password: Secret | None = None
    """Of the key, where it is encrypted."""

    @property
    def own_certificate(self) -> bytes:
        """The first certificate in DER."""
        return der_of(self.certificates)[0]


def open_keystore(data: bytes, password: Secret | None, key_password: Secret | None) -> KeyPair:
    """The key pair of a store; of a PEM store only the key has a password."""
    if data[:4] == _JKS:
        return _jks_pair(data, _needed(password), key_password or _needed(password))
    if _is_pkcs12(data):
        return _pkcs12_pair(data, _needed(password))
    return pem_pair(_pem(data), _pem(data), key_password)


def open_truststore(data: bytes, password: Secret | None) -> bytes:
    """The trusted certificates as PEM."""
    if data[:4] == _JKS:
        certificates = _Jks(data, password).certificates
    elif _is_pkcs12(data):
        certificates = _pkcs12_certificates(data, password)
    else:
        return pem_certificates(_pem(data))
    if not certificates:
        raise BadStore("it holds no trusted certificate")
    return b"".join(map(pem_of, certificates))


def pem_pair(key: bytes, certificates: bytes, key_password: Secret | None) -> KeyPair:
    """A key pair out of PEM texts."""
    found = _KEY.search(key)
    if found is None:
        raise BadStore("it holds no private key in PEM (-----BEGIN PRIVATE KEY-----)")
    is_encrypted = found[1] == b"ENCRYPTED " or b"Proc-Type: 4,ENCRYPTED" in found[0]
    if is_encrypted and not key_password:
        raise BadStore("its private key is encrypted: set ssl.key.password")
    return KeyPair(found[0], pem_certificates(certificates), key_password if is_encrypted else None)


def pem_certificates(text: bytes) -> bytes:
    """The certificates of a PEM text."""
    found = _CERTIFICATE.findall(text)
    if not found:
        raise BadStore("it holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    return b"\n".join(found) + b"\n"


def pem_of(der: bytes, kind: str = "CERTIFICATE") -> bytes:
    """DER as PEM."""
    return f"-----BEGIN {kind}-----\n".encode() + base64.encodebytes(der) + f"-----END {kind}-----\n".encode()


def der_of(certificates: bytes) -> list[bytes]:
    """Certificates in PEM as DER."""
    found = _CERTIFICATE.findall(certificates)
    return [base64.b64decode(b"".join(text.split(b"\n")[1:-1])) for text in found]


def _pem(data: bytes) -> bytes:
    if data[:4] == _JCEKS:
        raise BadStore("it is a JCEKS store; write it as PKCS12: keytool -importkeystore")
    if b"-----BEGIN" not in data:
        raise BadStore("it is neither PEM nor JKS nor PKCS12")
    return data


def _needed(password: Secret | None) -> Secret:
    if not password:
        raise BadStore("it needs ssl.keystore.password")
    return password


# ---- JKS: Java's old form. No library in use reads it; it is a list of entries with a digest behind.


class _Jks:
    """What a JKS store holds: the first key with its chain, and trusted certificates."""

    def __init__(self, data: bytes, password: Secret | None) -> None:
        self._data = data
        self._at = 4
        self.key: bytes | None = None
        self.chain: list[bytes] = []
        self.certificates: list[bytes] = []
        if password is not None:
            body, digest = data[:-_JKS_DIGEST_BYTES], data[-_JKS_DIGEST_BYTES:]
            mine = sha1(password.text.encode("utf-16-be") + _JKS_SALT + body).digest()
            if not hmac.compare_digest(mine, digest):
                raise BadStore("its password is wrong, or it is damaged")
        try:
            self._read()
        except (IndexError, UnicodeDecodeError):
            raise BadStore("it is a damaged JKS store") from None

    def _read(self) -> None:
        version = self._number(4)
        for _ in range(self._number(4)):
            is_key = self._number(4) == 1
            self._bytes(2)  # the alias
            self._number(8)  # its time
            if not is_key:
                self.certificates.append(self._certificate(version))
                continue
            key = self._bytes(4)
            chain = [self._certificate(version) for _ in range(self._number(4))]
            if self.key is None:
                self.key, self.chain = key, chain

    def _certificate(self, version: int) -> bytes:
        if version == 2:
            self._bytes(2)  # "X.509"
        return self._bytes(4)

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def _bytes(self, size_bytes: int) -> bytes:
        return self._take(self._number(size_bytes))

    def _take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise IndexError(size)
        self._at += size
        return self._data[self._at - size : self._at]


def _jks_pair(data: bytes, password: Secret, key_password: Secret) -> KeyPair:
    store = _Jks(data, password)
    if store.key is None:
        raise BadStore("it holds no private key")
    key = _jks_key(store.key, key_password.text.encode("utf-16-be"))
    return KeyPair(pem_of(key, "PRIVATE KEY"), b"".join(map(pem_of, store.chain)))


def _jks_key(protected: bytes, password: bytes) -> bytes:
    """Take Sun's protection off: SHA-1 of password and what came before makes the bytes to XOR with."""
    blob = _last_octets(protected)
    salt, secret, check = (
        blob[:_JKS_DIGEST_BYTES],
        blob[_JKS_DIGEST_BYTES:-_JKS_DIGEST_BYTES],
        blob[-_JKS_DIGEST_BYTES:],
    )
    stream, digest = b"", salt
    while len(stream) < len(secret):
        digest = sha1(password + digest).digest()
        stream += digest
    key = bytes(a ^ b for a, b in zip(secret, stream, strict=False))
    if not hmac.compare_digest(sha1(password + key).digest(), check):
        raise BadStore("the password of its key is wrong: ssl.key.password")
    return key


def _last_octets(der: bytes) -> bytes:
    """The octet string at the end of SEQUENCE(algorithm, OCTET STRING)."""
    _, content = _element(der, 0)
    begin, _ = content
    _, (_, end_of_algorithm) = _element(der, begin)
    _, (start, end) = _element(der, end_of_algorithm)
    return der[start:end]


def _element(der: bytes, at: int) -> tuple[int, tuple[int, int]]:
    tag, length = der[at], der[at + 1]
    at += 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(der[at : at + count], "big")
        at += count
    return tag, (at, at + length)


# ---- PKCS12: by the library `cryptography`, imported when it is needed


def _is_pkcs12(data: bytes) -> bool:
    return data[:1] == b"\x30"


def _pkcs12_pair(data: bytes, password: Secret) -> KeyPair:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise BadStore(_NO_LIBRARY) from None
    key, own, more = _load_pkcs12(data, password)
    if key is None or own is None:
        raise BadStore("it holds no private key")
    encoding = serialization.Encoding
    text = key.private_bytes(encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyPair(text, b"".join(each.public_bytes(encoding.PEM) for each in [own, *more]))


def _pkcs12_certificates(data: bytes, password: Secret | None) -> list[bytes]:
    key, own, more = _load_pkcs12(data, password)
    from cryptography.hazmat.primitives.serialization import Encoding

    trusted = [own, *more] if key is None and own is not None else more
    return [each.public_bytes(Encoding.DER) for each in trusted]


_NO_LIBRARY = "it is PKCS12, which needs the library cryptography: pip install 'ottla[tls]', or use PEM"


def _load_pkcs12(data: bytes, password: Secret | None):  # type: ignore[no-untyped-def]
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates
    except ImportError:
        raise BadStore(_NO_LIBRARY) from None
    try:
        return load_key_and_certificates(data, password.text.encode() if password else None)
    except ValueError:
        raise BadStore("its password is wrong, or it is damaged") from None
