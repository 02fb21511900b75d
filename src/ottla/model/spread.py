"""Java's hash of a name, by which Apache's brokers and ours find the same coordinator or fetcher."""


def java_string_hash(text: str) -> int:
    """``String.hashCode()``: over UTF-16 units, wrapping at 32 bits, signed."""
    result = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        result = (31 * result + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return as_java_int(result)


def as_java_int(number: int) -> int:
    """A number wrapped to Java's signed 32 bits."""
    wrapped = number & 0xFFFFFFFF
    return wrapped - (1 << 32) if wrapped >= 1 << 31 else wrapped


def place_of(hashed: int, places: int) -> int:
    """The absolute hash modulo ``places``, as Kafka computes it: Java's smallest integer counts as 0."""
    return 0 if hashed == -(1 << 31) else abs(hashed) % places


def coordinating_partition(key: str, partitions: int) -> int:
    """Which partition of the coordinators' topic keeps a group or a transactional id."""
    return place_of(java_string_hash(key), partitions)
