"""What ``ottla users`` and ``ottla configs --entity-type users`` do."""

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ottla.cli.shared.connection import connected, reason
from ottla.cli.shared.options import Output
from ottla.cli.shared.printing import print_rows
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.cli.shared.zookeeper import zookeeper_session
from ottla.client.admin.users import describe_users, remove_credentials, set_password
from ottla.insight.wording import table
from ottla.security.sasl.scram import (
    HASHES,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SALT_DIGITS,
    TYPES,
    credential_of,
    credential_text,
    salted_password,
)
from ottla.security.secret import Secret

if TYPE_CHECKING:
    from ottla.client.blocking.client import Client
    from ottla.server.zookeeper.blocking import BlockingZooKeeper
    from ottla.wire.apis.alter_user_scram_credentials import AlterUserScramCredentialsResult
    from ottla.wire.apis.describe_user_scram_credentials import DescribeUserScramCredentialsResult

DEFAULT_ITERATIONS = 4096
"""Kafka's, where ``--add-config`` names none."""
TRIES_MAX = 10
COLUMNS = ("user", "mechanism", "iterations")
_CREDENTIAL = re.compile(r"(?:iterations=([0-9]+),)?password=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The credentials that a user shall have."""

    mechanisms: tuple[str, ...]
    iterations: int
    password: Secret

    def __post_init__(self) -> None:
        if not ITERATIONS_MIN <= self.iterations <= ITERATIONS_MAX:
            raise UsageRefused(
                f"{self.iterations} iterations: between {ITERATIONS_MIN} and {ITERATIONS_MAX} are allowed"
            )
        if not self.password:
            raise UsageRefused("the password is empty")


def wanted(mechanisms: tuple[str, ...], iterations: int, password: str) -> Wanted:
    """The credentials of these mechanisms."""
    return Wanted(mechanisms, iterations, Secret(password))


def known(mechanisms: Iterable[str]) -> tuple[str, ...]:
    """These mechanisms, if they are SCRAM's."""
    names = tuple(dict.fromkeys(mechanisms))
    for name in names:
        if name not in HASHES:
            raise UsageRefused(f"{name!r} is none of {', '.join(HASHES)}")
    return names


def add(bootstrap_server: str, command_config: Path | None, user: str, wanted: Wanted) -> None:
    """Through the controller."""
    with connected(bootstrap_server, command_config) as client:
        _add(client, user, wanted)


def _add(client: "Client", user: str, wanted: Wanted) -> None:
    rows = client.run(set_password, user, wanted.password, wanted.mechanisms, wanted.iterations)
    _check(rows)


def remove(bootstrap_server: str, command_config: Path | None, user: str) -> None:
    """All of a user's credentials."""
    with connected(bootstrap_server, command_config) as client:
        (row,) = client.run(describe_users, [user])
        if row.error_code:
            raise CommandRefused(f"there is no user {user}: `ottla users list` shows who there is")
        mechanisms = [TYPES[info.mechanism] for info in row.credential_infos]
        _check(client.run(remove_credentials, user, mechanisms))


def _check(rows: "list[AlterUserScramCredentialsResult]") -> None:
    for row in rows:
        if row.error_code:
            raise CommandRefused(f"user {row.user}: {reason(row.error_code, row.error_message)}")


def list_users(bootstrap_server: str, command_config: Path | None, output: Output) -> None:
    """Who there is."""
    with connected(bootstrap_server, command_config) as client:
        rows = [
            dict(zip(COLUMNS, (row.user, TYPES[info.mechanism], info.iterations), strict=True))
            for row in client.run(describe_users)
            for info in row.credential_infos
        ]
    if output is not Output.TABLE:
        print_rows(rows, output, COLUMNS)
    elif not rows:
        typer.echo("There are no users yet: `ottla users add NAME` adds one.")
    else:
        for line in table(COLUMNS, [tuple(row.values()) for row in rows]):
            typer.echo(line)


# ---- in ottla configs


def configs_alter(
    bootstrap_server: str,
    command_config: Path | None,
    user: str | None,
    added: dict[str, str],
    deleted: list[str],
) -> None:
    """``--add-config 'SCRAM-SHA-512=[iterations=8192,password=…]'`` and ``--delete-config``."""
    name = _named(user)
    credentials = wanted_of(added)
    removed = known(deleted)
    with connected(bootstrap_server, command_config) as client:
        for each in credentials:
            _add(client, name, each)
        if removed:
            _check(client.run(remove_credentials, name, removed))
    typer.echo(f"Completed updating config for user {name}.")


def configs_describe(bootstrap_server: str, command_config: Path | None, user: str | None) -> None:
    """In Kafka's words."""
    with connected(bootstrap_server, command_config) as client:
        for row in client.run(describe_users, None if user is None else [_named(user)]):
            if line := _description(row):
                typer.echo(line)


def _description(row: "DescribeUserScramCredentialsResult") -> str:
    infos = ", ".join(
        f"{TYPES[info.mechanism]}=iterations={info.iterations}" for info in row.credential_infos
    )
    return f"SCRAM credential configs for user-principal '{row.user}' are {infos}" if infos else ""


def configs_in_zookeeper(
    connect: str, action: str, user: str | None, added: dict[str, str], deleted: list[str]
) -> None:
    """Credentials are added before any broker runs; everything else can wait until one does."""
    name = _named(user)
    if action != "--alter" or deleted:
        raise UsageRefused("with --zookeeper, credentials can be added only; the rest goes through a broker")
    for credential in wanted_of(added):
        add_in_zookeeper(connect, name, credential)
    typer.echo(f"Completed updating config for entity: user-principal '{name}'.")


def _named(user: str | None) -> str:
    if not user:
        raise UsageRefused("SCRAM credentials belong to a user: name one with --entity-name or --user")
    return user


def wanted_of(added: dict[str, str]) -> list[Wanted]:
    """The credentials that ``--add-config`` names; errors do not repeat the password."""
    credentials = []
    for name, text in added.items():
        if name not in HASHES:
            raise CommandRefused(
                f"{name} is not supported for users; {' and '.join(HASHES)} are, as in"
                " SCRAM-SHA-512=[iterations=8192,password=…]"
            )
        found = _CREDENTIAL.fullmatch(text)
        if found is None:
            raise UsageRefused(f"{name} is not of the form [iterations=8192,password=…]")
        credentials.append(Wanted((name,), int(found[1] or DEFAULT_ITERATIONS), Secret(found[2])))
    return credentials


# ---- in ZooKeeper


def add_in_zookeeper(connect: str, user: str, wanted: Wanted) -> None:
    """Before any broker runs; one that runs hears of it by the note."""
    salt = "".join(random.SystemRandom().choices(SALT_DIGITS, k=26)).encode()
    texts = {}
    for mechanism in wanted.mechanisms:
        salted = salted_password(mechanism, wanted.password, salt, wanted.iterations)
        texts[mechanism] = credential_text(credential_of(mechanism, salted, salt, wanted.iterations))
    with zookeeper_session(connect) as session:
        session.create_chroot()
        _store(session, user, texts)


def _store(session: "BlockingZooKeeper", user: str, texts: dict[str, str]) -> None:
    from ottla.server.zookeeper.blocking import ZooKeeperRefused
    from ottla.znodes import paths
    from ottla.znodes.codec_config import ConfigNode, decode_config, encode_config, encode_config_change
    from ottla.zookeeper.ops import ZkCode

    entity = f"users/{paths.sanitized(user)}"
    path = f"{paths.CONFIG}/{entity}"
    session.make_path([*paths.parents(path), *paths.parents(paths.CONFIG_CHANGE_PREFIX)])
    for _ in range(TRIES_MAX):
        found = session.get_or_none(path)
        before = decode_config(None if found is None else found.data)
        data = encode_config(ConfigNode({**before.config, **texts}, before.other))
        try:
            if found is None:
                session.create(path, data)
            else:
                session.set(path, data, found.stat.version)
        except ZooKeeperRefused as refused:
            if refused.code not in (ZkCode.BAD_VERSION, ZkCode.NODE_EXISTS, ZkCode.NO_NODE):
                raise
        else:
            session.create(paths.CONFIG_CHANGE_PREFIX, encode_config_change(entity), sequential=True)
            return
    raise CommandRefused(f"{path} is changed by somebody else all the time; try again")
