"""What would happen if a broker died, by the controller's own rule."""

from ottla.controller.election import Elected, Rule, elect_for_offline_partition
from ottla.insight.picture import PartitionNow
from ottla.insight.wording import joined
from ottla.model.ids import BrokerId, LeaderEpoch
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment


def what_if(now: PartitionNow) -> dict[int, str]:
    """What would happen if each replica died, by the controller's own rule."""
    return {broker: _if_died(now, broker) for broker in now.replicas}


def _if_died(now: PartitionNow, broker: int) -> str:
    if broker not in now.live:
        return "is not alive already"
    if broker != now.leader:
        isr = [member for member in now.isr if member != broker]
        if broker not in now.isr:
            return "nothing: it is not in sync and does not lead"
        refused = "; writes with acks=all would be refused" if len(isr) < now.min_isr else ""
        return f"broker {now.leader} goes on leading, in sync {joined(isr)}{refused}"
    isr_now = tuple(BrokerId(member) for member in now.isr)
    state = LeaderAndIsr(BrokerId(now.leader), LeaderEpoch(now.leader_epoch), isr_now, 0, 0)
    online = {BrokerId(member) for member in now.live if member != broker}
    election = elect_for_offline_partition(
        ReplicaAssignment(tuple(BrokerId(replica) for replica in now.replicas)),
        state,
        online,
        unclean_allowed=now.is_unclean_allowed,
    )
    if not isinstance(election, Elected):
        return f"the partition would be offline: {election.why}"
    refused = "; writes with acks=all would be refused" if len(election.isr) < now.min_isr else ""
    lost = "; RECORDS COULD BE LOST (unclean)" if election.rule is Rule.UNCLEAN else ""
    return f"broker {election.leader} would lead, in sync {joined(election.isr)}{refused}{lost}"
