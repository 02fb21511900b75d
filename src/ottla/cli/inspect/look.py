"""One look at the cluster for the screen: the picture, and groups with their lag."""

from ottla.cli.tools.groups.show import read_lags
from ottla.client.admin.groups import describe_group, list_groups
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from ottla.insight.overview import ClusterView, GroupLine, overview
from ottla.insight.read.cluster import read_picture

GROUPS_MS_MAX = 5_000


def look(client: Client, *, controller_epoch: int | None) -> ClusterView:
    """Ask the cluster for all that the screen shows."""
    picture = client.run(read_picture, controller_epoch=controller_epoch)
    return overview(picture, _groups(client))


def _groups(client: Client) -> list[GroupLine]:
    """Groups; one whose coordinator is away has no lag to show."""
    lines = []
    try:
        names = sorted(row.group_id for row in client.run(list_groups, timeout_ms=GROUPS_MS_MAX))
        for name in names:
            group = client.run(describe_group, name, GROUPS_MS_MAX)
            lag = sum(row.lag or 0 for row in read_lags(client, group))
            lines.append(GroupLine(name, group.group_state, len(group.members), lag))
    except ClientError:
        pass
    return lines
