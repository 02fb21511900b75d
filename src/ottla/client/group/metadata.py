"""Who commits a group's offsets."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A group, and the member and generation on whose behalf a producer commits its offsets."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
