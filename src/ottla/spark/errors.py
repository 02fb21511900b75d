"""What the data source refuses: each says what is wrong, with its value, and what to do."""


class SparkRefused(ValueError):
    """Something that the user gave cannot be done."""

    def __init__(self, what: str, remedy: str) -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(f"{what}; {remedy}")

    def __reduce__(self) -> tuple[type["SparkRefused"], tuple[str, str]]:
        return type(self), (self.what, self.remedy)


class OptionRefused(SparkRefused):
    """An option, its value, and what to do instead."""


def refuse(name: str, value: str, why: str, remedy: str) -> OptionRefused:
    """The error for one option."""
    return OptionRefused(f"option {name}={value!r}: {why}", remedy)


def refuse_name(name: str, why: str, remedy: str) -> OptionRefused:
    """The error for an option that is not known here: its value, which may be a password, is never shown."""
    return OptionRefused(f"option {name}: {why}", remedy)


class DataLoss(SparkRefused):
    """Records that the query was to read are gone from the cluster."""
