"""Every pair of states, legal or not, for partitions and replicas."""

import pytest

from ottla.controller.states import partition_states, replica_states
from ottla.controller.states.partition_states import PartitionState as P
from ottla.controller.states.replica_states import ReplicaState as R

PARTITION_STEPS = {
    (P.NON_EXISTENT, P.NEW),
    (P.NEW, P.ONLINE),
    (P.ONLINE, P.ONLINE),
    (P.OFFLINE, P.ONLINE),
    (P.NEW, P.OFFLINE),
    (P.ONLINE, P.OFFLINE),
    (P.OFFLINE, P.OFFLINE),
    (P.OFFLINE, P.NON_EXISTENT),
}
REPLICA_STEPS = {
    (R.NON_EXISTENT, R.NEW),
    *(
        (start, end)
        for start in (R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE)
        for end in (R.ONLINE, R.OFFLINE)
    ),
    (R.OFFLINE, R.DELETION_STARTED),
    (R.DELETION_STARTED, R.DELETION_SUCCESSFUL),
    (R.OFFLINE, R.DELETION_INELIGIBLE),
    (R.DELETION_STARTED, R.DELETION_INELIGIBLE),
    (R.DELETION_SUCCESSFUL, R.NON_EXISTENT),
}


@pytest.mark.parametrize("current", list(P))
@pytest.mark.parametrize("target", list(P))
def test_partition_takes_only_the_steps_of_kafkas_machine(current: P, target: P):
    assert partition_states.may_become(current, target) == ((current, target) in PARTITION_STEPS)


@pytest.mark.parametrize("current", list(R))
@pytest.mark.parametrize("target", list(R))
def test_replica_takes_only_the_steps_of_kafkas_machine(current: R, target: R):
    assert replica_states.may_become(current, target) == ((current, target) in REPLICA_STEPS)
