"""Ways to spoil bytes: what a bad disk, a bad network or a bad mind would do."""

from __future__ import annotations

from random import Random

EXTREMES = (0, 1, -1, 2**31 - 1, -(2**31), 127, 128, 255, 2**15 - 1)


def mutated(random: Random, content: bytes) -> bytes:
    """One to four changes, of kinds that differ."""
    spoiled = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        at = random.randrange(len(spoiled)) if spoiled else 0
        kind = random.randrange(8)
        if not spoiled or kind == 0:
            spoiled[at:at] = random.randbytes(random.randint(1, 12))
        elif kind in (1, 2):
            spoiled[at] ^= 1 << random.randrange(8)
        elif kind == 3:
            spoiled[at] = random.randrange(256)
        elif kind == 4:
            del spoiled[at : at + random.randint(1, 12)]
        elif kind == 5:
            del spoiled[at:]
        elif kind == 6:
            size = random.choice((2, 4, 8))
            extreme = random.choice(EXTREMES) % (1 << (8 * size))
            spoiled[at : at + size] = extreme.to_bytes(size, "big")
        else:
            other = random.randrange(len(spoiled))
            size = random.randint(1, 40)
            spoiled[at : at + size] = spoiled[other : other + size]
    return bytes(spoiled)
