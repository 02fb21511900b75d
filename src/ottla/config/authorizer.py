"""Who decides what clients may do, from the file's settings.

Kafka keeps ``super.users`` and ``allow.everyone.if.no.acl.found`` out of its list of settings; so does this.
"""

from collections.abc import Mapping
from typing import Final

from ottla.config.areas import AuthorizerConfig

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
CLASS: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
OPEN: Final = "allow.everyone.if.no.acl.found"
NAMES: Final = frozenset({SUPER_USERS, OPEN})
_OWN_ZOOKEEPER: Final = "authorizer.zookeeper."


def read_authorizer(properties: Mapping[str, str]) -> AuthorizerConfig | None:
    """None where the file names no authorizer; of a file with problems nobody asks."""
    if not properties.get(CLASS, "").strip():
        return None
    return AuthorizerConfig(
        super_users=tuple(_super_users(properties)),
        allow_everyone_if_no_acl_found=properties.get(OPEN, "").strip().lower() == "true",
    )


def authorizer_problems(properties: Mapping[str, str]) -> list[str]:
    """What is wrong with the settings of the authorizer, each with what to write instead."""
    name = properties.get(CLASS, "").strip()
    if name not in ("", ACL_AUTHORIZER):
        why = (
            "that one is for clusters without ZooKeeper"
            if name.endswith(".StandardAuthorizer")
            else "unknown"
        )
        return [f"{CLASS}={name}: {why}; Ottla knows {ACL_AUTHORIZER} only"]
    problems = [
        f"{SUPER_USERS}: {user!r} is not <type>:<name>; write User:alice;User:bob, with semicolons"
        for user in _super_users(properties)
        if not all(user.partition(":")[::2])
    ]
    for user in _super_users(properties):
        if ",User:" in user.replace(" ", ""):
            problems.append(f"{SUPER_USERS}: {user!r} has a comma; principals are separated by semicolons")
    text = properties.get(OPEN, "").strip().lower()
    if text not in ("", "true", "false"):
        problems.append(f"{OPEN}={text}: write true or false")
    problems += [
        f"{other} is set: Ottla keeps access rules in the ZooKeeper of zookeeper.connect"
        for other in sorted(properties)
        if name and other.startswith(_OWN_ZOOKEEPER)
    ]
    return problems


def _super_users(properties: Mapping[str, str]) -> list[str]:
    return [part.strip() for part in properties.get(SUPER_USERS, "").split(";") if part.strip()]
