"""``ssl.cipher.suites``: from the names that Java and Kafka use to those of OpenSSL."""

import re
from typing import Final

OF_TLS_1_3: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""OpenSSL's three; Python has no call to choose among them."""
_SUITE: Final = re.compile(r"TLS_(?:((?:ECDHE|DHE)_(?:RSA|ECDSA))|RSA)_WITH_(\w+)")


def openssl_name(suite: str) -> str | None:
    """A suite of TLS 1.2 by OpenSSL's name; None for one that is not known here."""
    found = _SUITE.fullmatch(suite)
    if found is None:
        return None
    exchange = "" if found[1] is None else found[1].replace("_", "-") + "-"
    cipher = found[2].removesuffix("_SHA256") if found[2].startswith("CHACHA20") else found[2]
    cipher = cipher.replace("AES_", "AES").replace("_CBC", "")
    return exchange + cipher.replace("_", "-")
