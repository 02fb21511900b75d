"""What the cluster can lose next: how many partitions survive the death of one more broker."""

from dataclasses import dataclass

from ottla.insight.picture import Picture, TopicSeen
from ottla.insight.wording import counted


@dataclass(frozen=True, slots=True)
class Survival:
    """Counts of partitions; each is counted once, where it is worst off."""

    partitions: int
    offline: int
    at_the_edge: int
    """One replica in sync: if its broker dies, the partition is offline."""
    writes_at_the_edge: int
    """If one more replica falls out, writes with acks=all are refused."""
    writes_refused: int

    @property
    def mood(self) -> str:
        """``bad``, ``warn`` or ``good``."""
        if self.offline or self.writes_refused:
            return "bad"
        return "warn" if self.at_the_edge or self.writes_at_the_edge else "good"

    def sentence(self) -> str:
        """The worst, in one sentence."""
        said = []
        if self.offline:
            said.append(f"{counted(self.offline, 'partition')} {_is(self.offline)} offline")
        if self.writes_refused:
            verb = "refuses" if self.writes_refused == 1 else "refuse"
            said.append(f"{counted(self.writes_refused, 'partition')} {verb} writes with acks=all")
        if self.at_the_edge:
            said.append(f"{counted(self.at_the_edge, 'partition')} can survive no further failure")
        if self.writes_at_the_edge:
            said.append(
                f"{counted(self.writes_at_the_edge, 'partition')} would refuse writes with acks=all"
                " after one more failure"
            )
        if said:
            return "; ".join(said) + "."
        return (
            "Every partition survives the loss of any one broker."
            if self.partitions
            else "Nothing is kept here yet."
        )


def survival(picture: Picture) -> Survival:
    """Look at every partition."""
    live = picture.live
    offline = edge = writes_edge = refused = 0
    for name, seen in picture.partitions.items():
        min_isr = (picture.topics.get(name.topic) or TopicSeen(name.topic)).min_isr
        in_sync = sum(broker in live for broker in seen.isr)
        if seen.leader not in live:
            offline += 1
        elif in_sync < min_isr:
            refused += 1
        elif in_sync <= 1:
            edge += 1
        elif in_sync - 1 < min_isr:
            writes_edge += 1
    return Survival(len(picture.partitions), offline, edge, writes_edge, refused)


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
