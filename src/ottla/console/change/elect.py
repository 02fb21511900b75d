"""Give leaders back: elect each partition's preferred leader, where that one may lead."""

from ottla.client.admin.cluster import elect_leaders
from ottla.console.change.act import Act, At, Change, Field, Filled, Outcome, Plan, outcome
from ottla.insight.skew import preferred_elections
from ottla.insight.wording import counted
from ottla.model.errors import ErrorCode


async def _plan(at: At, filled: Filled) -> Plan:
    words = filled.get("q", "").lower().split()
    all_ = preferred_elections(at.picture)
    found = {name: why for name, why in all_.items() if all(word in str(name).lower() for word in words)}
    wanted = [name for name, why in found.items() if not why]
    rows = {
        name: Change(
            str(name),
            f"broker {seen.leader}, epoch {seen.leader_epoch}" if seen.leader >= 0 else "nobody",
            found[name] or f"broker {seen.replicas[0]}",
            f"/partitions/{name.topic}/{name.partition}",
        )
        for name in found
        if (seen := at.picture.partitions[name])
    }
    cannot = [rows[name] for name in found if found[name]]
    if not wanted:
        return Plan("Every preferred leader that may lead does so already.", None, [], cannot)

    async def work() -> list[Outcome]:
        done = await at.client.run(elect_leaders, wanted)
        needless = ErrorCode.ELECTION_NOT_NEEDED
        return [
            outcome(
                str(name), 0 if row.error_code == needless else row.error_code, row.error_message, "leads"
            )
            for name, row in sorted(done.items())
        ]

    sentence = f"{counted(len(wanted), 'partition')} would get the preferred leader back."
    return Plan(sentence, work, [rows[name] for name in wanted], cannot)


def _command(filled: Filled) -> str:
    return "ottla leader-election --election-type preferred --all-topic-partitions"


ELECT = Act(
    "elect",
    "/elect",
    "Give leaders back",
    "Elect them",
    (Field("q", "Partitions", hint="words in their names; empty: all", is_needed=False),),
    _plan,
    _command,
)
