"""What each command is for, in one line: the help of ``ottla`` itself, which imports no command to say it."""

TOOLS = "Kafka's tools, with Kafka's flags"

SECTIONS: dict[str, dict[str, str]] = {
    "A cluster on this machine": {
        "up": "start ZooKeeper and brokers",
        "status": "show what runs here",
        "down": "stop it; the data stays",
        "kill": "end a broker as a crash would",
        "pause": "freeze a broker",
        "resume": "let a frozen broker go on",
        "restart": "stop a broker cleanly and start it again",
        "doctor": "is this machine fit for a cluster?",
        "drill": "a broker's death and return, told and checked",
        "sim": "a whole cluster under faults, in virtual time",
    },
    "What is, and why": {
        "describe": "the cluster on one screen",
        "watch": "the same, live; elections scroll by",
        "explain": "why a partition is led by whom, and what if",
        "console": "all of that in a browser",
    },
    "Servers": {
        "broker": "run one broker from server.properties",
        "keeper": "run the built-in ZooKeeper server",
        "zookeeper": "run Apache ZooKeeper on this machine",
    },
    TOOLS: {
        "topics": "list, describe, create, grow, delete topics",
        "configs": "describe and change settings",
        "acls": "who may do what: rules listed, added, removed",
        "console-producer": "write lines as records",
        "console-consumer": "print records",
        "consumer-groups": "groups: lag, members, moving offsets",
        "transactions": "list, describe, find and end hanging ones",
        "get-offsets": "offsets of partitions at a time",
        "leader-election": "elect preferred leaders, or any",
        "preferred-replica-election": "the old tool, by way of a znode",
        "reassign-partitions": "move partitions between brokers",
        "delete-records": "delete records before an offset",
        "log-dirs": "what lies in the log directories",
        "dump-log": "print segments, indexes, snapshots",
        "replica-verification": "compare replicas batch by batch",
        "perf": "measure writing and reading",
        "cluster-id": "the id of the cluster",
        "broker-api-versions": "what each broker speaks",
        "zookeeper-shell": "look at znodes, change and watch them",
        "kafka-scripts": "write kafka-topics.sh and its like",
    },
    "More": {
        "users": "who may log in with SCRAM",
        "drain": "move everything away from a broker",
        "pipeline": "jobs over topics, run by Spark",
    },
}
"""By kind, in the order in which the help shows them."""
