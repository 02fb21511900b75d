"""Answers in neutral words: what must differ between two brokers (ids, ports, topics) gets a common name."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from ottla.records.batch import CorruptRecords, batches
from ottla.records.record import read_records
from ottla.wire.apis.init_producer_id import InitProducerIdResponse
from ottla.wire.compiler.layout import fields_of
from support.differential.target import Target

NODES = {
    "node_id",
    "leader_id",
    "controller_id",
    "broker_id",
    "preferred_read_replica",
    "replica_nodes",
    "isr_nodes",
    "offline_replicas",
    "replicas",
    "isr",
}
# Of these only the sign is compared: the values are the broker's own, or of the moment.
SIGNS = {"session_id", "total_bytes", "usable_bytes", "producer_id_start"}
KEYS = (
    "api_key",
    "name",
    "topic_name",
    "topic",
    "topic_id",
    "partition_index",
    "partition_id",
    "index",
    "partition",
    "resource_name",
    "node_id",
    "broker_id",
    "group_id",
    "key",
    "producer_id",
)
MOMENT_MS = 1_600_000_000_000
ZERO_UUID = bytes(16)


class Neutral:
    """Translates the answers of one target."""

    def __init__(self, target: Target) -> None:
        peer = target.the_peer
        self._target = target
        self._nodes = {target.node_id: "me", peer.node_id: "peer", target.controller_id: "controller"}
        self._ports = {
            target.ports[number]: f"port of {name}" for number, name in self._nodes.items() if number >= 0
        }
        self._ids = {topic_id: self.text(name) for name, topic_id in target.topic_ids.items()}

    def said(self, response: msgspec.Struct, version: int) -> dict[str, Any]:
        """The fields of a response that its version has."""
        shown: dict[str, Any] = {}
        for field in fields_of(type(response)):
            if field.is_in(version):
                shown[field.name] = self._value(field.name, getattr(response, field.name), version)
        if isinstance(response, InitProducerIdResponse) and response.producer_id >= 0:
            shown["producer_id"] = "an id of the broker's block"
        return shown

    def text(self, value: str) -> str:
        """A text without the name, id and port of the broker that said it."""
        target, peer = self._target, self._target.the_peer
        value = value.replace(f"-of-{target.name}", "").replace(f"-of-{peer.name}", " of the peer")
        value = re.sub(rf"\b127\.0\.0\.1:{target.port}\b", "address of me", value)
        value = re.sub(r"(expected|received|broker) (\d+)\b", self._with_role, value)
        return re.sub(r"\[\d{13}, \d{13}\]", "[a time, another]", value)

    def _with_role(self, found: re.Match[str]) -> str:
        number = int(found[2])
        return f"{found[1]} {self._nodes.get(number, number)}"

    def _value(self, name: str, value: Any, version: int) -> Any:
        if name == "records":
            return _described(value)
        if isinstance(value, msgspec.Struct):
            return self.said(value, version)
        if isinstance(value, list):
            return _by_key([self._value(name, each, version) for each in value])
        if isinstance(value, tuple):
            return [self._value(name, each, version) for each in value]
        if isinstance(value, str):
            if name == "resource_name" and value.isdecimal():
                return self._nodes.get(int(value), value)
            return "directory" if name == "log_dir" else self.text(value)
        if isinstance(value, bytes):
            return self._ids.get(value, "no id" if value == ZERO_UUID else value.hex())
        return self._number(name, value)

    def _number(self, name: str, value: Any) -> Any:
        if name in NODES:
            return self._nodes.get(value, value)
        if name == "port":
            return self._ports.get(value, value)
        if name in SIGNS:
            return "some" if value > 0 else value
        if name == "log_append_time_ms" and value > MOMENT_MS:
            return "a time"
        return value


def _by_key(shown: list[Any]) -> Any:
    """A list as a map by its elements' names or numbers: what is listed counts, not the order."""
    for key in KEYS:
        if shown and all(
            isinstance(each, dict) and each.get(key) not in (None, "", "no id") for each in shown
        ):
            found = {str(each[key]): each for each in shown}
            if len(found) == len(shown):
                return found
    return sorted(shown, key=_sortable)


def _described(records: Any) -> Any:
    """Batches and records; of times that the broker stamped only that they are there."""
    if records is None:
        return None
    described = []
    end = 0
    try:
        for header in batches(records):
            by_broker = header.is_log_append_time or header.is_control
            time = "a time" if by_broker else header.max_timestamp
            described.append(
                {
                    "offsets": [header.base_offset, header.last_offset],
                    "epoch": header.partition_leader_epoch,
                    "attributes": header.attributes,
                    "time": time,
                    "producer": [header.producer_id, header.producer_epoch, header.base_sequence],
                    "records": [
                        [record.offset, _text(record.key), _text(record.value)]
                        for record in read_records(records, header)
                    ],
                }
            )
            end = header.end_position
    except CorruptRecords as error:
        described.append({"corrupt": str(error)})
    return {"batches": described, "bytes behind": len(records) - end}


def _text(part: bytes | None) -> str | None:
    return None if part is None else part.decode(errors="replace")


def _sortable(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
