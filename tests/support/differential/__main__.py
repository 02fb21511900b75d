"""Compare two running brokers of one cluster: reference and candidate address, ZooKeeper's address."""

from __future__ import annotations

import sys

from support.differential.allowed import allowed_differences
from support.differential.suite import run_suite
from support.differential.target import Target


def main(reference: str, candidate: str, zk_connect: str) -> int:
    bootstrap = f"{reference},{candidate}"
    ports = [address.rpartition(":")[2] for address in (reference, candidate)]
    first, second = (Target(port, int(port), bootstrap, zk_connect) for port in ports)
    allowed = allowed_differences()
    asked, unexpected = run_suite(first, second, allowed)
    for difference in unexpected:
        sys.stdout.write(f"{difference}\n")
    for each in allowed:
        sys.stdout.write(f"allowed {each.used} times: {each.reason}\n")
    sys.stdout.write(f"{asked} requests, {len(unexpected)} differences that are not allowed\n")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
