"""Settings that Ottla does not support: a broker with another value than the default does not start."""

TABLE = """
alter.config.policy.class.name class null
client.quota.callback.class class null
controller.listener.names string null
controller.quorum.bootstrap.servers list ""
controller.quorum.voters list ""
create.topic.policy.class.name class null
delegation.token.master.key password null
delegation.token.secret.key password null
early.start.listeners string null
eligible.leader.replicas.enable boolean false
group.coordinator.rebalance.protocols list classic {consumer,classic,share,unknown}
max.connection.creation.rate int 2147483647 >=0 cluster-wide
principal.builder.class class org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder per-broker
process.roles list "" {broker,controller}
remote.log.storage.system.enable boolean false
security.providers string null
zookeeper.clientCnxnSocket string null
zookeeper.metadata.migration.enable boolean false
zookeeper.set.acl boolean false
zookeeper.ssl.client.enable boolean false
"""  # noqa: E501
