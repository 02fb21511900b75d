"""Refusals of jobs in terms of the flags that were typed, not of Spark's options."""

import re
from collections.abc import Mapping
from typing import Any

_FLAGS: dict[str, dict[str, str]] = {
    "kafka.bootstrap.servers": {"bootstrap_servers": "--bootstrap-server"},
    "subscribe": {"topics": "--topics", "topic": "--topic"},
    "topic": {
        "dead_letter_topic": "--dead-letter-topic",
        "valid_topic": "--valid-topic",
        "to_topic": "--to-topic",
        "topic": "--topic",
    },
}
"""What a refusal calls it; which options of a job it may have come from, and their flags."""

_FLAGS_BY_NAME = (
    "archive",
    "checkpoint",
    "from",
    "picture",
    "schema",
    "since",
    "source-topic",
    "to",
    "topics",
    "until",
    "watermark",
    "weights",
    "where",
    "window",
)
"""What jobs call as the command line does."""

_NAMED = re.compile(r"""\boption ([\w.-]+)(?:=('[^']*'|"[^"]*"))?""")
_NOT_OFFERED = re.compile(r", or lower option kafka\.batch\.size=\d+")
"""Advice that does not apply to jobs."""


def in_flags(refusal: str, options: Mapping[str, Any]) -> str:
    """The refusal, with a flag wherever it names what the job's option of that value stands for."""

    def in_flag(found: re.Match[str]) -> str:
        flag = _flag(found[1], (found[2] or "")[1:-1], options)
        if flag is None:
            return found[0]
        return f"{flag} {found[2]}" if found[2] else flag

    return _NAMED.sub(in_flag, _NOT_OFFERED.sub("", refusal))


def _flag(name: str, value: str, options: Mapping[str, Any]) -> str | None:
    if name in _FLAGS_BY_NAME:
        return f"--{name}"
    given = {flag: str(options[field]) for field, flag in _FLAGS.get(name, {}).items() if options.get(field)}
    fitting = [flag for flag, text in given.items() if value in (part.strip() for part in text.split(","))]
    return next(iter(fitting or given), None)
