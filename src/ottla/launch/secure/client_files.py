"""Ready settings for the clients of a closed cluster, one file for each kind of client."""

from pathlib import Path

from ottla.config.properties import properties_text
from ottla.security.sasl.mechanisms import MODULES


def client_files(
    bootstrap_servers: str, ca: Path, user: str, password: str, mechanism: str
) -> dict[str, str]:
    """Their texts by name."""
    java = {
        "bootstrap.servers": bootstrap_servers,
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(ca),
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{MODULES[mechanism]} required username="{user}" password="{password}";',
    }
    librdkafka = {
        "bootstrap.servers": bootstrap_servers,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(ca),
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }
    python = {
        "bootstrap_servers": bootstrap_servers,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(ca),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }
    return {
        "client.properties": "# Java's clients, Kafka's tools and `ottla` commands (--command-config)\n"
        + properties_text(java),
        "librdkafka.properties": "# librdkafka: kcat -F, confluent-kafka\n" + properties_text(librdkafka),
        "python_client.py": '"""kafka-python: KafkaProducer(**SETTINGS)."""\n\n'
        + "SETTINGS = {\n"
        + "".join(f"    {name!r}: {value!r},\n" for name, value in python.items())
        + "}\n",
        "spark.properties": "# Options of Spark's own Kafka connector: .options(**these)\n"
        + properties_text({f"kafka.{name}": value for name, value in java.items()}),
    }
