"""The broker in its cluster: identity, ZooKeeper, topics, controller, shutdown."""

TABLE = """
broker.id int -1
    The broker's number in the cluster; -1 lets ZooKeeper choose one above reserved.broker.max.id.
node.id int -1
    Another name for broker.id.
broker.id.generation.enable boolean true
    Whether ZooKeeper may choose the broker's number.
reserved.broker.max.id int 1000 >=0
    The highest number that people may give; chosen ones begin after it.
authorizer.class.name string ""
    What decides who may do what: kafka.security.authorizer.AclAuthorizer; without it everybody may do all.
broker.rack string null
    The rack that the broker stands in, for the placement of replicas and for reading from the nearest one.
inter.broker.protocol.version string 3.9-IV0
    The version that the brokers of the cluster speak with each other; Ottla speaks 3.9.
zookeeper.connect string null
    The ZooKeeper servers as host:port, separated by commas, with an optional /path behind the last.
zookeeper.connection.timeout.ms int null
    How long the start waits for ZooKeeper; the session time-out when it is not set.
zookeeper.session.timeout.ms int 18000
    How long a silence ends the broker's session in ZooKeeper.
zookeeper.max.in.flight.requests int 10 >=1 no-effect
    How many requests to ZooKeeper may wait for their answers.
auto.create.topics.enable boolean true
    Whether a topic that a client names and that does not exist is created.
delete.topic.enable boolean true
    Whether topics can be deleted.
num.partitions int 1 >=1
    How many partitions a topic gets when its creator does not say.
default.replication.factor int 1
    How many replicas a partition gets when its creator does not say.
auto.leader.rebalance.enable boolean true
    Whether the controller gives leaderships back to the preferred replicas by itself.
leader.imbalance.check.interval.seconds long 300 >=1
    How often the controller looks for leaders that are not the preferred ones.
leader.imbalance.per.broker.percentage int 10
    How many of a broker's preferred leaderships, in percent, may be elsewhere before they are given back.
unclean.leader.election.enable boolean false cluster-wide
    Whether a replica outside the ISR may become leader when no other is left, at the price of lost records.
controlled.shutdown.enable boolean true
    Whether a broker that stops first asks the controller to move its leaderships.
controlled.shutdown.max.retries int 3
    How often the controller is asked when it does not succeed.
controlled.shutdown.retry.backoff.ms long 5000
    How long to wait between such requests.
controller.socket.timeout.ms int 30000 no-effect
    How long the controller waits for a connection to a broker.
ottla.decisions.enable boolean true
    Whether the controller's decisions and their reasons are kept in the topic __ottla_decisions.
ottla.guard.enable boolean true
    Whether a guard process ends the broker's session in ZooKeeper as soon as the broker's process is dead.
ottla.replica.placement string shifted {shifted,plain}
    How new topics are placed: by Kafka's shifted rule, or replica j of partition i on broker (i + j) mod n.
"""
