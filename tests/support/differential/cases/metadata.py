"""ApiVersions, Metadata, DescribeCluster and what a broker tells of itself: configs, log dirs, producers."""

from __future__ import annotations

from ottla.wire.apis.api_versions import ApiVersionsRequest
from ottla.wire.apis.describe_cluster import DescribeClusterRequest
from ottla.wire.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.apis.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.wire.apis.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from support.differential.batches_to_send import a_batch
from support.differential.cases.produce import produce
from support.differential.talk import Cases, Talk

CASES = Cases()
UNKNOWN_ID = bytes(range(16))
TOPIC, BROKER, LOGGER = 2, 4, 8


@CASES.add_for(*range(5))
def api_versions_in_version(talk: Talk, version: int) -> None:
    talk.ask(ApiVersionsRequest(client_software_name="judge", client_software_version="1.0"), version)


@CASES.add_for(
    ("", "1.0"), ("judge", ""), ("bad name", "1.0"), ("-judge", "1.0"), ("judge", "v 1"), ("j" * 100, "1")
)
def api_versions_of_software(talk: Talk, software: tuple[str, str]) -> None:
    name, software_version = software
    talk.ask(ApiVersionsRequest(client_software_name=name, client_software_version=software_version), 3)


def metadata(
    talk: Talk,
    version: int,
    *names: str,
    note: str = "",
    may_create: bool = True,
    with_operations: bool = False,
) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    if version >= 4:
        request.allow_auto_topic_creation = may_create
    if version >= 8:
        request.include_topic_authorized_operations = with_operations
        request.include_cluster_authorized_operations = with_operations and version <= 10
    talk.ask(request, version, note=note)


@CASES.add_for(*range(13))
def metadata_in_version(talk: Talk, version: int) -> None:
    metadata(talk, version, talk.topic("compact"), note="one topic")
    metadata(talk, version, "nobody", note="unknown topic", may_create=False)
    metadata(talk, version, "a/b", note="illegal topic", may_create=False)
    if version:
        metadata(talk, version, note="no topics")


@CASES.add_for(8, 10, 11, 12)
def metadata_with_operations(talk: Talk, version: int) -> None:
    metadata(talk, version, talk.topic("tiny"), with_operations=True)


@CASES.add_for(10, 12)
def metadata_by_id(talk: Talk, version: int) -> None:
    wanted = [MetadataRequestTopic(topic_id=talk.topic_id("tiny"), name=None)]
    talk.ask(MetadataRequest(topics=wanted), version, note="known")
    wanted = [MetadataRequestTopic(topic_id=UNKNOWN_ID, name=None)]
    talk.ask(MetadataRequest(topics=wanted), version, note="unknown")
    wanted = [MetadataRequestTopic(topic_id=talk.topic_id("tiny"), name=talk.topic("tiny"))]
    talk.ask(MetadataRequest(topics=wanted), version, note="id and name")
    talk.ask(MetadataRequest(topics=[MetadataRequestTopic(name=None)]), version, note="neither")


@CASES.add
def metadata_of_a_topic_named_twice(talk: Talk) -> None:
    metadata(talk, 12, talk.topic("tiny"), talk.topic("tiny"))
    metadata(talk, 12, talk.target.the_peer.topic("tiny"), "", may_create=False)


@CASES.add_for((0, False, 1), (0, True, 1), (1, False, 1), (1, False, 2), (1, False, 9))
def describe_cluster(talk: Talk, given: tuple[int, bool, int]) -> None:
    version, operations, kind = given
    request = DescribeClusterRequest(include_cluster_authorized_operations=operations, endpoint_type=kind)
    talk.ask(request, version, note=f"operations {operations}, endpoints {kind}")


def describe_configs(
    talk: Talk,
    kind: int,
    name: str,
    keys: tuple[str, ...] | None,
    *,
    version: int = 4,
    synonyms: bool = False,
) -> None:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms and version >= 1)
    talk.ask(request, version, note=f"{kind} {keys}")


@CASES.add_for(*range(5))
def describe_configs_of_a_topic_in_version(talk: Talk, version: int) -> None:
    keys = ("retention.ms", "cleanup.policy", "nonsense")
    describe_configs(talk, TOPIC, talk.topic("compact"), keys, version=version)
    describe_configs(talk, TOPIC, talk.topic("compact"), keys, version=version, synonyms=True)


@CASES.add
def describe_all_configs_of_a_topic(talk: Talk) -> None:
    describe_configs(talk, TOPIC, talk.topic("strict"), None)
    describe_configs(talk, TOPIC, talk.topic("strict"), None, synonyms=True)
    describe_configs(talk, TOPIC, talk.topic("strict"), ())


@CASES.add_for("nobody", "", "a/b", "__consumer_offsets")
def describe_configs_of_the_topic(talk: Talk, name: str) -> None:
    describe_configs(talk, TOPIC, name, ("cleanup.policy", "segment.bytes"))


@CASES.add
def describe_configs_of_brokers(talk: Talk) -> None:
    keys = (
        "queued.max.requests",
        "log.retention.ms",
        "log.cleaner.threads",
        "message.max.bytes",
        "min.insync.replicas",
    )
    for name in (str(talk.target.node_id), str(talk.target.the_peer.node_id), "", "x", "-1"):
        describe_configs(talk, BROKER, name, keys)
    describe_configs(talk, BROKER, str(talk.target.node_id), keys, synonyms=True)


@CASES.add_for(0, 1, 3, 16, 32, 99)
def describe_configs_of_resource_type(talk: Talk, kind: int) -> None:
    describe_configs(talk, kind, "something", ("x",))


@CASES.add
def describe_configs_of_nothing_and_of_two(talk: Talk) -> None:
    talk.ask(DescribeConfigsRequest(), 4)
    resources = [
        DescribeConfigsResource(TOPIC, talk.topic("tiny"), ("max.message.bytes",)),
        DescribeConfigsResource(TOPIC, "nobody", ("max.message.bytes",)),
    ]
    talk.ask(DescribeConfigsRequest(resources=resources), 4)


@CASES.add_for(*range(5))
def describe_log_dirs_in_version(talk: Talk, version: int) -> None:
    produce(talk, a_batch(2))
    one = [DescribableLogDirTopic(talk.topic(), (talk.partition,))]
    talk.ask(DescribeLogDirsRequest(topics=one), version, note="one partition")
    unknown = [DescribableLogDirTopic("nobody", (0,)), DescribableLogDirTopic(talk.topic(), (99_999,))]
    talk.ask(DescribeLogDirsRequest(topics=unknown), version, note="unknown")
    talk.ask(DescribeLogDirsRequest(topics=[]), version, note="nothing")


@CASES.add
def describe_producers(talk: Talk) -> None:
    for producer_id, epoch, sequence in ((50, 0, 0), (51, 2, 0), (50, 0, 1)):
        produce(talk, a_batch(producer=(producer_id, epoch, sequence)))
    wanted = [
        TopicRequest(talk.topic(), (talk.partition, 99_999)),
        TopicRequest("nobody", (0,)),
        TopicRequest("a/b", (0,)),
        TopicRequest(talk.target.the_peer.topic("plain"), (0,)),
    ]
    talk.ask(DescribeProducersRequest(topics=wanted), 0)
    talk.ask(DescribeProducersRequest(), 0, note="of nothing")
