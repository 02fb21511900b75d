"""Addresses in Java's words, which access rules, records and tools of Kafka have."""

from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address


@lru_cache(maxsize=1024)
def as_in_java(host: str) -> str:
    """Of IPv6 no zero is left out; an IPv4 address inside one stands alone."""
    try:
        address = IPv6Address(host.partition("%")[0])
    except AddressValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
