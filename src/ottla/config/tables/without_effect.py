"""Kafka's settings for parts that Ottla does not have: accepted, shown, and named in a warning when set."""

TABLE = """
alter.log.dirs.replication.quota.window.num int 11 >=1
alter.log.dirs.replication.quota.window.size.seconds int 1 >=1
auto.include.jmx.reporter boolean true
background.threads int 10 >=1 cluster-wide
broker.heartbeat.interval.ms int 2000
broker.session.timeout.ms int 9000
controller.quorum.append.linger.ms int 25
controller.quorum.election.backoff.max.ms int 1000
controller.quorum.election.timeout.ms int 1000
controller.quorum.fetch.timeout.ms int 2000
controller.quorum.request.timeout.ms int 2000
controller.quorum.retry.backoff.ms int 20
delegation.token.expiry.check.interval.ms long 3600000 >=1
delegation.token.expiry.time.ms long 86400000 >=1
delegation.token.max.lifetime.ms long 604800000 >=1
delete.records.purgatory.purge.interval.requests int 1
fetch.purgatory.purge.interval.requests int 1000
group.consumer.assignors list org.apache.kafka.coordinator.group.assignor.UniformAssignor,org.apache.kafka.coordinator.group.assignor.RangeAssignor
group.consumer.heartbeat.interval.ms int 5000 >=1
group.consumer.max.heartbeat.interval.ms int 15000 >=1
group.consumer.max.session.timeout.ms int 60000 >=1
group.consumer.max.size int 2147483647 >=1
group.consumer.min.heartbeat.interval.ms int 5000 >=1
group.consumer.min.session.timeout.ms int 45000 >=1
group.consumer.session.timeout.ms int 45000 >=1
group.coordinator.append.linger.ms int 10 >=0
group.coordinator.threads int 1 >=1
group.share.delivery.count.limit int 5 2..10
group.share.heartbeat.interval.ms int 5000 >=1
group.share.max.groups short 10 1..100
group.share.max.heartbeat.interval.ms int 15000 >=1
group.share.max.record.lock.duration.ms int 60000 30000..3600000
group.share.max.session.timeout.ms int 60000 >=1
group.share.max.size short 200 10..1000
group.share.min.heartbeat.interval.ms int 5000 >=1
group.share.min.record.lock.duration.ms int 15000 1000..30000
group.share.min.session.timeout.ms int 45000 >=1
group.share.partition.max.record.locks int 200 100..10000
group.share.record.lock.duration.ms int 30000 1000..60000
group.share.session.timeout.ms int 45000 >=1
initial.broker.registration.timeout.ms int 60000
kafka.metrics.polling.interval.secs int 10 >=1
kafka.metrics.reporters list ""
log.local.retention.bytes long -2 >=-2 cluster-wide
log.local.retention.ms long -2 >=-2 cluster-wide
metadata.log.dir string null
metadata.log.max.record.bytes.between.snapshots long 20971520 >=1
metadata.log.max.snapshot.interval.ms long 3600000 >=0
metadata.log.segment.bytes int 1073741824 >=12
metadata.log.segment.ms long 604800000
metadata.max.idle.interval.ms int 500 >=0
metadata.max.retention.bytes long 104857600
metadata.max.retention.ms long 604800000
metric.reporters list "" cluster-wide
metrics.num.samples int 2 >=1
metrics.recording.level string INFO
metrics.sample.window.ms long 30000 >=1
num.io.threads int 8 >=1 cluster-wide
num.network.threads int 3 >=1 cluster-wide
num.replica.alter.log.dirs.threads int null
password.encoder.cipher.algorithm string AES/CBC/PKCS5Padding
password.encoder.iterations int 4096 >=1024
password.encoder.key.length int 128 >=8
password.encoder.keyfactory.algorithm string null
password.encoder.old.secret password null
password.encoder.secret password null
producer.purgatory.purge.interval.requests int 1000
queued.max.request.bytes long -1
queued.max.requests int 500 >=1
remote.fetch.max.wait.ms int 500 >=1 cluster-wide
remote.log.index.file.cache.total.size.bytes long 1073741824 >=1 cluster-wide
remote.log.manager.copier.thread.pool.size int -1
remote.log.manager.copy.max.bytes.per.second long 9223372036854775807 >=1 cluster-wide
remote.log.manager.copy.quota.window.num int 11 >=1
remote.log.manager.copy.quota.window.size.seconds int 1 >=1
remote.log.manager.expiration.thread.pool.size int -1
remote.log.manager.fetch.max.bytes.per.second long 9223372036854775807 >=1 cluster-wide
remote.log.manager.fetch.quota.window.num int 11 >=1
remote.log.manager.fetch.quota.window.size.seconds int 1 >=1
remote.log.manager.task.interval.ms long 30000 >=1
remote.log.manager.thread.pool.size int 10 >=1
remote.log.metadata.custom.metadata.max.bytes int 128 >=0
remote.log.metadata.manager.class.name string org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
remote.log.metadata.manager.class.path string null
remote.log.metadata.manager.impl.prefix string rlmm.config.
remote.log.metadata.manager.listener.name string null
remote.log.reader.max.pending.tasks int 100 >=1
remote.log.reader.threads int 10 >=1
remote.log.storage.manager.class.name string null
remote.log.storage.manager.class.path string null
remote.log.storage.manager.impl.prefix string rsm.config.
sasl.client.callback.handler.class class null
sasl.jaas.config password null per-broker
sasl.kerberos.kinit.cmd string /usr/bin/kinit per-broker
sasl.kerberos.min.time.before.relogin long 60000 per-broker
sasl.kerberos.principal.to.local.rules list DEFAULT per-broker
sasl.kerberos.service.name string null per-broker
sasl.kerberos.ticket.renew.jitter double 0.05 per-broker
sasl.kerberos.ticket.renew.window.factor double 0.8 per-broker
sasl.login.callback.handler.class class null
sasl.login.class class null
sasl.login.connect.timeout.ms int null
sasl.login.read.timeout.ms int null
sasl.login.refresh.buffer.seconds short 300 per-broker
sasl.login.refresh.min.period.seconds short 60 per-broker
sasl.login.refresh.window.factor double 0.8 per-broker
sasl.login.refresh.window.jitter double 0.05 per-broker
sasl.login.retry.backoff.max.ms long 10000
sasl.login.retry.backoff.ms long 100
sasl.mechanism.controller.protocol string GSSAPI
sasl.oauthbearer.clock.skew.seconds int 30
sasl.oauthbearer.expected.audience list null
sasl.oauthbearer.expected.issuer string null
sasl.oauthbearer.jwks.endpoint.refresh.ms long 3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long 10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long 100
sasl.oauthbearer.jwks.endpoint.url string null
sasl.oauthbearer.scope.claim.name string scope
sasl.oauthbearer.sub.claim.name string sub
sasl.oauthbearer.token.endpoint.url string null
sasl.server.callback.handler.class class null
socket.connection.setup.timeout.max.ms long 30000
socket.connection.setup.timeout.ms long 10000
ssl.allow.dn.changes boolean false
ssl.allow.san.changes boolean false
ssl.engine.factory.class class null per-broker
ssl.keymanager.algorithm string SunX509 per-broker
ssl.protocol string TLSv1.3 per-broker
ssl.provider string null per-broker
ssl.secure.random.implementation string null per-broker
ssl.trustmanager.algorithm string PKIX per-broker
telemetry.max.bytes int 1048576 >=1
zookeeper.ssl.cipher.suites list null
zookeeper.ssl.crl.enable boolean false
zookeeper.ssl.enabled.protocols list null
zookeeper.ssl.endpoint.identification.algorithm string HTTPS
zookeeper.ssl.keystore.location string null
zookeeper.ssl.keystore.password password null
zookeeper.ssl.keystore.type string null
zookeeper.ssl.ocsp.enable boolean false
zookeeper.ssl.protocol string TLSv1.2
zookeeper.ssl.truststore.location string null
zookeeper.ssl.truststore.password password null
zookeeper.ssl.truststore.type string null
"""  # noqa: E501
