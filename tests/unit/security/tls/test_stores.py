"""Stores of every kind give the same key and certificates."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from ottla.security.secret import Secret
from ottla.security.tls.stores import BadStore, der_of, open_keystore, open_truststore, pem_pair
from support.security.tls import authority, of_a_broker

PASSWORD = "store-secret"
OWN = der_of(of_a_broker().certificate.encode())
TRUSTED = der_of(authority().certificate.encode())


def as_pkcs12() -> bytes:
    key = serialization.load_pem_private_key(of_a_broker().key.encode(), None)
    certificate = x509.load_pem_x509_certificate(of_a_broker().certificate.encode())
    lock = serialization.BestAvailableEncryption(PASSWORD.encode())
    return pkcs12.serialize_key_and_certificates(b"own", key, certificate, None, lock)  # type: ignore[arg-type]


def der_key(pem: bytes, password: str | None = None) -> bytes:
    key = serialization.load_pem_private_key(pem, password.encode() if password else None)
    return key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


OWN_KEY = der_key(of_a_broker().key.encode())


def keytool(*arguments: str) -> None:
    subprocess.run(["keytool", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def jks(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """A key store and a trust store, both by Java."""
    folder: Path = tmp_path_factory.mktemp("jks")
    (folder / "own.p12").write_bytes(as_pkcs12())
    (folder / "ca.pem").write_text(authority().certificate)
    stores = ("-deststoretype", "JKS", "-deststorepass", PASSWORD, "-destkeypass", "key-secret")
    keytool(
        "-importkeystore", "-srckeystore", str(folder / "own.p12"), "-srcstorepass", PASSWORD,
        "-srcstoretype", "PKCS12", "-srcalias", "own", "-destkeystore", str(folder / "own.jks"), *stores,
    )  # fmt: skip
    keytool(
        "-importcert", "-noprompt", "-alias", "ca", "-file", str(folder / "ca.pem"),
        "-keystore", str(folder / "ca.jks"), "-storetype", "JKS", "-storepass", PASSWORD,
    )  # fmt: skip
    return (folder / "own.jks").read_bytes(), (folder / "ca.jks").read_bytes()


def test_a_pem_file_has_key_and_certificates() -> None:
    pair = open_keystore(of_a_broker().both.encode(), None, None)

    assert (der_key(pair.key), der_of(pair.certificates), pair.password) == (OWN_KEY, OWN, None)
    assert open_truststore(authority().certificate.encode(), None) == authority().certificate.encode()


def test_pkcs12_has_them_too() -> None:
    pair = open_keystore(as_pkcs12(), Secret(PASSWORD), None)

    assert (der_key(pair.key), der_of(pair.certificates)) == (OWN_KEY, OWN)


@pytest.mark.java
@pytest.mark.slow
def test_jks_has_them_too(jks: tuple[bytes, bytes]) -> None:
    pair = open_keystore(jks[0], Secret(PASSWORD), Secret("key-secret"))

    assert (der_key(pair.key), der_of(pair.certificates)) == (OWN_KEY, OWN)
    assert der_of(open_truststore(jks[1], Secret(PASSWORD))) == TRUSTED
    assert der_of(open_truststore(jks[1], None)) == TRUSTED


@pytest.mark.java
@pytest.mark.slow
def test_wrong_passwords_and_damage_are_told_apart_from_nothing(jks: tuple[bytes, bytes]) -> None:
    own, _ = jks
    with pytest.raises(BadStore, match="password is wrong"):
        open_keystore(own, Secret("wrong"), None)
    with pytest.raises(BadStore, match=r"ssl\.key\.password"):
        open_keystore(own, Secret(PASSWORD), Secret("wrong"))
    with pytest.raises(BadStore, match="damaged"):
        open_truststore(own[:300], None)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "neither PEM nor JKS nor PKCS12"),
        (bytes.fromhex("cececece") + bytes(9), "JCEKS"),
        (of_a_broker().certificate.encode(), "no private key"),
        (of_a_broker().key.encode(), "no certificate"),
        (as_pkcs12()[:-9], "damaged"),
    ],
)
def test_what_is_no_store_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(BadStore, match=why):
        open_keystore(data, Secret(PASSWORD), None)


def test_an_encrypted_key_needs_its_password() -> None:
    key = serialization.load_pem_private_key(of_a_broker().key.encode(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"key-secret"),
    )

    with pytest.raises(BadStore, match=r"set ssl\.key\.password"):
        pem_pair(locked, of_a_broker().certificate.encode(), None)
    pair = pem_pair(locked, of_a_broker().certificate.encode(), Secret("key-secret"))
    assert der_key(pair.key, "key-secret") == OWN_KEY
    assert pair.password == Secret("key-secret")
