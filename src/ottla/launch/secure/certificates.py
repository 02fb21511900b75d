"""A certificate authority of one's own, for clusters on machines of one's own."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, GeneralName, Name

NO_LIBRARY: Final = "making certificates needs the library cryptography: pip install 'ottla[tls]'"
YEARS: Final = 10
DAYS: Final = 825
"""How long a certificate of a broker or a client holds: more is refused by some systems."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A key and its certificate, as PEM."""

    key: str = field(repr=False)
    certificate: str

    @property
    def both(self) -> str:
        """What ``ssl.keystore.location`` names with ``ssl.keystore.type=PEM``."""
        return self.key + self.certificate


class Authority:
    """Signs certificates. ``ImportError`` where the library for it is not installed."""

    def __init__(self, name: str = "Ottla CA", now: datetime.datetime | None = None) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self._now = now or datetime.datetime.now(datetime.UTC)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name((("CN", name),))
        self._certificate = self._sign(self._key, self._name, (), is_authority=True, days=365 * YEARS)

    @classmethod
    def known(cls, issued: Issued) -> "Authority":
        """One that was made before."""
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization

        self = cls.__new__(cls)
        self._now = datetime.datetime.now(datetime.UTC)
        self._key = cast(
            "EllipticCurvePrivateKey", serialization.load_pem_private_key(issued.key.encode(), None)
        )
        self._certificate = x509.load_pem_x509_certificate(issued.certificate.encode())
        self._name = self._certificate.subject
        return self

    @property
    def certificate(self) -> str:
        """What everybody trusts, as PEM: ``ssl.truststore.location``."""
        return _pem(self._certificate)

    @property
    def issued(self) -> Issued:
        """The authority's own key, to sign more one day."""
        return Issued(_key_pem(self._key), self.certificate)

    def issue(
        self,
        common_name: str,
        hosts: Sequence[str] = (),
        *,
        days: int = DAYS,
        more: Sequence[tuple[str, str]] = (),
    ) -> Issued:
        """A certificate for these host names and addresses; ``more`` stands before the common name."""
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(
            key, _name((*more, ("CN", common_name))), hosts, is_authority=False, days=days
        )
        return Issued(_key_pem(key), _pem(certificate))

    def _sign(
        self,
        key: "EllipticCurvePrivateKey",
        name: "Name",
        hosts: Sequence[str],
        *,
        is_authority: bool,
        days: int,
    ) -> "Certificate":
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        begin = self._now - datetime.timedelta(hours=1)  # The clocks of other machines may be behind.
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(self._now + datetime.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _host(host: str) -> "GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(attributes: Sequence[tuple[str, str]]) -> "Name":
    """``CN``, ``O``, ``OU`` or an object identifier, with their values, in the order of the certificate."""
    from cryptography import x509

    oids = {
        "CN": x509.OID_COMMON_NAME,
        "O": x509.OID_ORGANIZATION_NAME,
        "OU": x509.OID_ORGANIZATIONAL_UNIT_NAME,
    }
    return x509.Name(
        [
            x509.NameAttribute(oids.get(kind) or x509.ObjectIdentifier(kind), value)
            for kind, value in attributes
        ]
    )


def _pem(certificate: "Certificate") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()


def _key_pem(key: "EllipticCurvePrivateKey") -> str:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
