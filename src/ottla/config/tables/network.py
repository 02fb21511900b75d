"""Listeners, connections and their limits."""

TABLE = """
listeners string PLAINTEXT://:9092 per-broker
    Where to listen: NAME://host:port, separated by commas; an empty host means every address.
advertised.listeners string null per-broker
    What other brokers and clients are told to connect to; the listeners themselves when it is not set, with the machine's name for an empty host.
listener.security.protocol.map string SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT per-broker
    Which security protocol each listener name speaks: NAME:PROTOCOL, separated by commas.
inter.broker.listener.name string null
    The listener through which brokers speak with each other.
security.inter.broker.protocol string PLAINTEXT {PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL}
    The protocol between brokers when no inter-broker listener is named.
control.plane.listener.name string null
    A listener for the controller's requests alone.
max.connections int 2147483647 >=0 cluster-wide
    How many connections the broker accepts at one time.
max.connections.per.ip int 2147483647 >=0 cluster-wide
    How many connections one address may have at one time.
max.connections.per.ip.overrides string "" host:count cluster-wide
    Other limits for single addresses: host:count, separated by commas.
connections.max.idle.ms long 600000
    A connection without traffic for this long is closed.
sasl.enabled.mechanisms list GSSAPI per-broker
    How clients may log in on SASL listeners: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512. For one listener: listener.name.<name>.sasl.enabled.mechanisms.
sasl.mechanism.inter.broker.protocol string GSSAPI per-broker
    How brokers log in with each other, if their listener is a SASL listener.
sasl.server.max.receive.size int 524288
    The largest request that is read before a login.
connection.failed.authentication.delay.ms int 100 >=0
    How long a failed login waits for its answer.
connections.max.reauth.ms long 0
    How long a login holds until the client must log in again; 0 for ever. For one mechanism of a listener: listener.name.<name>.<mechanism>.connections.max.reauth.ms.
ssl.cipher.suites list "" per-broker
    Cipher suites by the names of TLS; OpenSSL's choice when none is named. Those of TLSv1.3 all or none.
ssl.client.auth string none {required,requested,none} per-broker
    Whether clients must show a certificate. On SASL_SSL listeners it counts only as listener.name.<name>.ssl.client.auth.
ssl.enabled.protocols list TLSv1.2,TLSv1.3 per-broker
    Which versions of TLS are spoken: TLSv1.2, TLSv1.3.
ssl.endpoint.identification.algorithm string https per-broker
    https: another broker must be who its host name says; empty: that is not looked at.
ssl.key.password password null per-broker
    The password of the private key, if it is not the key store's.
ssl.keystore.certificate.chain password null per-broker
    The certificates of the key as PEM, in place of a file.
ssl.keystore.key password null per-broker
    The private key as PEM (PKCS#8), in place of a file.
ssl.keystore.location string null per-broker
    The file with private key and certificates. For one listener, as all ssl settings: listener.name.<name>.ssl.keystore.location.
ssl.keystore.password password null per-broker
    The password of the key store.
ssl.keystore.type string JKS per-broker
    JKS, PKCS12 or PEM. What a file is is seen from its first bytes.
ssl.principal.mapping.rules string DEFAULT
    How the name in a client's certificate becomes the name of a user: RULE:pattern/replacement/[LU] or DEFAULT, separated by commas.
ssl.truststore.certificates password null per-broker
    Trusted certificates as PEM, in place of a file.
ssl.truststore.location string null per-broker
    The file with the certificates that are trusted; without one, those that the system trusts.
ssl.truststore.password password null per-broker
    The password of the trust store.
ssl.truststore.type string JKS per-broker
    JKS, PKCS12 or PEM. What a file is is seen from its first bytes.
socket.listen.backlog.size int 50 >=1
    How many connections may wait to be accepted.
socket.receive.buffer.bytes int 102400
    The size of a socket's receive buffer. Unless the file names one, the operating system chooses, as with -1.
socket.send.buffer.bytes int 102400
    The size of a socket's send buffer. Unless the file names one, the operating system chooses, as with -1.
socket.request.max.bytes int 104857600 >=1
    The largest request that is read; a larger one closes the connection.
request.timeout.ms int 30000
    How long a request to another broker waits for its answer.
quota.window.num int 11 >=1
    Over how many windows the rates of clients with quotas are measured.
quota.window.size.seconds int 1 >=1
    How long one of these windows is.
controller.quota.window.num int 11 >=1
    For how many windows a client may use up its quota of controller mutations at once.
controller.quota.window.size.seconds int 1 >=1
    How long one of these windows is.
max.request.partition.size.limit int 2000 >=1 no-effect
    How many partitions one request for a listing may ask for.
ottla.cuts.file string ""
    For tests: a file of addresses, host:port a line, that this broker shall not reach; read again at SIGUSR2.
ottla.metrics.listener string ""
    Where /metrics (Prometheus) and /health are shown over HTTP, as host:port; empty: nowhere.
"""  # noqa: E501
