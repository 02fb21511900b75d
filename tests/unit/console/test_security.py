"""The page of who may what: what it says of rules, users and quotas, and of brokers that do not tell."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ottla.client.errors import BrokerError
from ottla.console.app import Console
from ottla.model.errors import ErrorCode
from ottla.security.acls.kinds import Entry, Operation, PatternType, Permission, Resource, ResourceType, Rule
from ottla.wire.apis.describe_configs import DescribeConfigsResourceResult, DescribeConfigsResult
from ottla.wire.apis.describe_user_scram_credentials import CredentialInfo, DescribeUserScramCredentialsResult
from support.client.asgi import Answered, asked
from support.client.pictures import a_picture
from support.client.standing import TOKEN, SaidClient, a_standing_console

HEADERS = {"Host": "127.0.0.1:8092", "Authorization": f"Bearer {TOKEN.secret}"}
HOSTILE = "<script>alert(1)</script>"
RULES = [
    Rule(
        Resource(ResourceType.TOPIC, "or", PatternType.PREFIXED),
        Entry("User:bob", "*", Operation.ALL, Permission.ALLOW),
    ),
    Rule(
        Resource(ResourceType.TOPIC, "orders"),
        Entry("User:bob", "10.0.0.1", Operation.WRITE, Permission.DENY),
    ),
    Rule(
        Resource(ResourceType.USER, HOSTILE),
        Entry("User:eve", "*", Operation.CREATE_TOKENS, Permission.ALLOW),
    ),
]


def settings(_: Any, **__: Any) -> list[DescribeConfigsResult]:
    """Both brokers have a listener that asks for a password, and the second one that asks nobody."""
    inside = "INSIDE://h:1"
    return [
        DescribeConfigsResult(
            resource_name=broker,
            configs=[
                DescribeConfigsResourceResult(name="listeners", value=listeners),
                DescribeConfigsResourceResult(
                    name="listener.security.protocol.map", value="INSIDE:SASL_SSL,OPEN:PLAINTEXT"
                ),
                DescribeConfigsResourceResult(name="sasl.enabled.mechanisms", value="SCRAM-SHA-512"),
            ],
        )
        for broker, listeners in (("0", inside), ("1", f"{inside},OPEN://h:2"))
    ]


def quotas(wanted: dict[str, Any], _: int) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    if tuple(wanted) != ("user", "client-id"):
        return []
    return [({"user": "bob", "client-id": None}, {"producer_byte_rate": 5e6})]


def a_console(**answers: Any) -> Console:
    users = [
        DescribeUserScramCredentialsResult(
            user="bob", credential_infos=[CredentialInfo(mechanism=2, iterations=4096)]
        )
    ]
    told: dict[str, Any] = {
        "describe_configs": settings,
        "describe_acls": RULES,
        "describe_users": users,
        "describe_quotas": quotas,
        **answers,
    }
    console = a_standing_console(SaidClient(**told))
    console.world.saw(a_picture({"orders-0": (1, (1, 0), (1, 0))}))
    return console


def ask(console: Console, path: str) -> Answered:
    return asyncio.run(asked(console.application(), path, HEADERS))


def twin(console: Console, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ask(console, f"/security.json{query}").body)
    return found


def refusing(code: ErrorCode) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        raise BrokerError(code)

    return refuse


def test_each_operation_has_its_verdict_and_the_rule_that_decides() -> None:
    page = twin(a_console(), "?principal=User:bob&kind=topic&name=orders&host=10.0.0.1")

    rows = {row["operation"]: row for row in page["rights"]}
    assert (rows["Write"]["is_allowed"], rows["Read"]["is_allowed"]) == (False, True)
    assert rows["Write"]["rule"] == "Topic:LITERAL:orders denies Write to User:bob from 10.0.0.1"
    assert rows["Read"]["rule"] == "Topic:PREFIXED:or allows All to User:bob from any host"
    assert "--deny-host 10.0.0.1" in rows["Write"]["command"]
    assert page["frame"]["command"] == (
        "ottla explain --principal User:bob --topic orders --operation read --host 10.0.0.1"
    )


def test_listeners_users_and_quotas_are_told_and_the_open_door_comes_first() -> None:
    page = twin(a_console())

    assert page["sentence"] == "3 rules say who may what. Nobody has to say who they are at OPEN."
    assert [(row["name"], row["is_open"], row["brokers"]) for row in page["listeners"]] == [
        ("OPEN", True, "1"),
        ("INSIDE", False, "0,1"),
    ]
    assert page["users"] == [{"name": "bob", "mechanisms": "SCRAM-SHA-512 (4096 iterations)"}]
    assert page["quotas"] == [
        {"whom": "user bob, every other client-id", "limits": "producer_byte_rate=5000000.0"}
    ]


def test_rules_are_found_by_words_and_shown_as_text() -> None:
    console = a_console()

    assert [row["permission"] for row in twin(console, "?q=bob+write")["rules"]] == ["denies"]
    page = ask(console, "/security").body.decode()
    assert "&lt;script&gt;alert(1)" in page
    assert HOSTILE not in page
    assert "/security.json" in page


def test_without_an_authorizer_everybody_may_do_everything() -> None:
    console = a_console(describe_acls=refusing(ErrorCode.SECURITY_DISABLED))

    page = twin(console, "?principal=User:bob&name=orders")

    assert page["sentence"].startswith("Everybody may do everything: no broker has an authorizer.")
    assert (page["mood"], page["rights"], page["rules_trouble"]) == ("bad", [], None)
    assert "User:bob may do everything" in ask(console, "/security?principal=User:bob&name=o").body.decode()


def test_what_brokers_do_not_tell_this_console_is_said_so() -> None:
    refused = refusing(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    page = twin(a_console(describe_acls=refused, describe_users=refused, describe_quotas=refused))

    troubles = {page[f"{part}_trouble"] for part in ("rules", "users", "quotas")}
    assert troubles == {"CLUSTER_AUTHORIZATION_FAILED"}
    assert page["sentence"].startswith(
        "The rules are not told to this console (CLUSTER_AUTHORIZATION_FAILED)."
    )


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("?principal=bob&name=o", "bob is no principal; write it as User:bob."),
        ("?principal=User:bob&kind=topic", "Name the topic."),
        ("?principal=User:bob&kind=moon&name=o", "moon is nothing that rules protect"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_in_words(query: str, problem: str) -> None:
    answer = ask(a_console(), f"/security{query}")

    assert answer.status == 400
    assert problem in answer.body.decode()
