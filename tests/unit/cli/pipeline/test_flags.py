"""A job's refusal speaks of the flags that were typed."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.cli.pipeline.flags import in_flags

SERVERS = {"bootstrap_servers": "a:1,b:2"}
VALIDATE = {"topic": "orders", "dead_letter_topic": "bad", "valid_topic": "good", "checkpoint": "/c"}
AGGREGATE = {"topic": "orders", "to_topic": "counts", "checkpoint": "/c"}


@pytest.mark.parametrize(
    ("options", "refusal", "told"),
    [
        (
            SERVERS,
            "option kafka.bootstrap.servers='a:1,b:2': no answer; see that the brokers run",
            "--bootstrap-server 'a:1,b:2': no answer; see that the brokers run",
        ),
        (
            {"topics": "a, b"},
            "option subscribe='b': it is gone; create it",
            "--topics 'b': it is gone; create it",
        ),
        (
            AGGREGATE,
            "option subscribe='orders': it is gone; create it",
            "--topic 'orders': it is gone; create it",
        ),
        (
            AGGREGATE,
            "option topic='counts': it is gone; create it",
            "--to-topic 'counts': it is gone; create it",
        ),
        (VALIDATE, "option topic='bad': no; create it", "--dead-letter-topic 'bad': no; create it"),
        (VALIDATE, "option topic='good': no; create it", "--valid-topic 'good': no; create it"),
        (VALIDATE, "option topic='orders': no; create it", "--topic 'orders': no; create it"),
        (VALIDATE, "option checkpoint='/c': no; choose", "--checkpoint '/c': no; choose"),
        ({}, 'option to="/it\'s": no; choose', '--to "/it\'s": no; choose'),
        (
            {"topic": "again"},
            "again refuses a batch; raise the topic's max.message.bytes, or lower option kafka.batch.size=5",
            "again refuses a batch; raise the topic's max.message.bytes",
        ),
        (
            {"topic": "t"},
            "option startingOffsets: t-0 ends at 3; wait",
            "option startingOffsets: t-0 ends at 3; wait",
        ),
        ({}, "there is no column 'value'; name it", "there is no column 'value'; name it"),
    ],
)
def test_an_option_is_told_by_the_flag_that_set_it(options: dict[str, Any], refusal: str, told: str) -> None:
    assert in_flags(refusal, options) == told
