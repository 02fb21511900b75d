"""Whether the other brokers will take this one's word: each asks whether the sender may do ClusterAction."""

import shlex

from ottla.config.areas import ListenersConfig
from ottla.security.acls.kinds import CLUSTER_NAME, WILDCARD, Operation, Resource, ResourceType
from ottla.security.acls.rules import AclRules, Question
from ottla.security.principal import ANONYMOUS, Principal

_CLUSTER = Resource(ResourceType.CLUSTER, CLUSTER_NAME)


def own_principal(listeners: ListenersConfig, subject: str | None) -> Principal | None:
    """As whom the others see this broker; None if no rule of theirs fits its certificate.

    Its own settings stand for theirs: brokers of one cluster have the same."""
    name = listeners.inter_broker_listener_name
    if (login := listeners.logins.get(name)) is not None:
        return Principal("User", login.user)
    tls = listeners.tls.get(name)
    if tls is None or tls.client_auth == "none" or subject is None:
        return ANONYMOUS
    mapped = tls.mapping.name_of(subject)
    return None if mapped is None else Principal("User", mapped)


def why_not_heard(rules: AclRules, listeners: ListenersConfig, subject: str | None) -> str | None:
    """What is wrong with this broker's own rights and what to do; None if nothing is.

    From which address it comes to the others it does not know: a rule for any will do."""
    principal = own_principal(listeners, subject)
    if principal is None:
        return None  # no connection between brokers comes about, and that is told at each
    hosts = {WILDCARD, *(entry.host for entry in rules.of(_CLUSTER))}
    user = str(principal)
    for host in hosts:
        question = Question(user, host, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
        if rules.decide(question).is_allowed:
            return None
    command = f"ottla acls --add --cluster --operation ClusterAction --allow-principal {shlex.quote(user)}"
    return (
        f"this broker comes to the others as {user!r}, who is no super user and may not do ClusterAction on"
        " the cluster: they will not obey it as controller, and it will get nothing as follower; name it in"
        f" super.users of every broker, or run: {command}"
    )
