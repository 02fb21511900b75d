"""One TLS connection without its socket: encrypted bytes in and out here, plain ones there."""

import contextlib
import ssl
from collections.abc import Iterable
from typing import Final, TypeAlias, cast

Buffer: TypeAlias = bytes | bytearray | memoryview

JOINED_BYTES_MAX: Final = 16 * 1024
"""Parts smaller than this are joined: each write becomes a TLS record of its own."""
SENT_BYTES_MAX: Final = 1024 * 1024
"""How much is encrypted at once: more memory than that is not held twice."""
_WORDS: Final = {
    "HTTP_REQUEST": "the other side speaks HTTP",
    "NO_SHARED_CIPHER": "the two sides have no cipher suite in common: ssl.cipher.suites",
    "NO_SUITABLE_SIGNATURE_ALGORITHM": "the key of this side suits no cipher suite of the other",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client sent no certificate, and ssl.client.auth=required",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the other side refuses our certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the other side does not trust our certificate: its ssl.truststore",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the other side found nothing in common",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the other side speaks other versions of TLS: ssl.enabled.protocols",
    "TLSV1_ALERT_UNKNOWN_CA": "the other side does not trust our certificate: its ssl.truststore",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the other side wants a certificate: ssl.keystore",
    "UNSUPPORTED_PROTOCOL": "the other side speaks other versions of TLS: ssl.enabled.protocols",
    "WRONG_VERSION_NUMBER": "the other side does not speak TLS: security.protocol",
}


class TlsFailed(Exception):
    """The connection cannot go on; the text says why. What ``take`` gives still goes out."""


class TlsSession:
    """The state of one connection."""

    __slots__ = ("_incoming", "_outgoing", "_tls", "is_ended", "is_ready")

    def __init__(self, context: ssl.SSLContext, host: str | None = None) -> None:
        """``host`` is whom a client wants to reach; without one this side is the server."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=host is None, server_hostname=host
        )
        self.is_ready = False
        """The handshake is done: plain bytes may go both ways."""
        self.is_ended = False
        """The other side has said that nothing more comes."""

    def received(self, data: Buffer) -> None:
        """These encrypted bytes came."""
        self._incoming.write(data)

    def handshake(self) -> bool:
        """Go on with the handshake; whether it is done."""
        if not self.is_ready:
            try:
                self._tls.do_handshake()
                self.is_ready = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                raise TlsFailed(words_of(error)) from None
        return self.is_ready

    @property
    def certificate(self) -> bytes | None:
        """The other side's certificate in DER, verified; None if it sent none."""
        return self._tls.getpeercert(binary_form=True)

    @property
    def cipher(self) -> tuple[str, str]:
        """The cipher suite and the protocol."""
        name, protocol, _ = self._tls.cipher() or ("", "", 0)
        return name, protocol

    def read_into(self, buffer: memoryview) -> int:
        """Fill the buffer with plain bytes as far as there are any."""
        tls, incoming = self._tls, self._incoming
        count, size = 0, len(buffer)
        try:
            while count < size and (incoming.pending or tls.pending()):
                more = cast(int, tls.read(size - count, buffer[count:]))
                if not more:
                    self.is_ended = True
                    break
                count += more
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_ended = True
        except ssl.SSLError as error:
            raise TlsFailed(words_of(error)) from None
        return count

    def encrypt(self, parts: Iterable[Buffer]) -> Iterable[bytes]:
        """What to send for these plain bytes, in pieces."""
        small: list[Buffer] = []
        size = 0
        for part in parts:
            if len(part) < JOINED_BYTES_MAX:
                small.append(part)
                size += len(part)
                if size < JOINED_BYTES_MAX:
                    continue
                self._tls.write(b"".join(small))
            else:
                if small:
                    self._tls.write(b"".join(small))
                view = memoryview(part)
                for start in range(0, len(view), SENT_BYTES_MAX):
                    self._tls.write(view[start : start + SENT_BYTES_MAX])
                    if self._outgoing.pending >= SENT_BYTES_MAX:
                        yield self._outgoing.read()
            small, size = [], 0
        if small:
            self._tls.write(b"".join(small))
        if self._outgoing.pending:
            yield self._outgoing.read()

    def take(self) -> bytes:
        """What the session itself has to say: handshakes, alerts."""
        return self._outgoing.read() if self._outgoing.pending else b""

    def end(self) -> None:
        """Say that nothing more comes."""
        if self.is_ready:
            # The other side has not said it yet, or is in no state to hear it.
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()


def words_of(error: ssl.SSLError) -> str:
    """What went wrong, for a person."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the other side's certificate is not accepted: {error.verify_message}"
    reason = error.reason or str(error)
    return _WORDS.get(reason) or reason.replace("_", " ").lower()
