"""The same session over TLS, against a real server with a certificate of its own."""

import asyncio
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from ottla.launch.java import find_java
from ottla.launch.ports import free_ports
from ottla.server.zookeeper.session import ZooKeeperClient, ZooKeeperUnavailable
from ottla.zookeeper.ops import Create, Created, Data, Delete, Deleted, GetData
from support.zookeeper.client import a_client

pytestmark = [pytest.mark.java, pytest.mark.slow]

PASSWORD = "changeit"


def keytool(*arguments: str) -> None:
    program = find_java().home / "bin" / "keytool"
    subprocess.run([program, *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a server's TLS port, and the certificate to trust."""
    directory = tmp_path_factory.mktemp("tls")
    store, certificate = directory / "server.p12", directory / "server.pem"
    shared = ("-keystore", str(store), "-storepass", PASSWORD, "-alias", "server")
    keytool(
        *("-genkeypair", *shared, "-storetype", "PKCS12", "-keyalg", "EC", "-dname", "CN=localhost"),
        *("-ext", "san=dns:localhost,ip:127.0.0.1", "-validity", "2"),
    )
    keytool("-exportcert", "-rfc", "-file", str(certificate), *shared)
    trusted = directory / "trusted.p12"
    keytool(
        *("-importcert", "-noprompt", "-file", str(certificate), "-alias", "server"),
        *("-keystore", str(trusted), "-storepass", PASSWORD, "-storetype", "PKCS12"),
    )
    (port,) = free_ports(1)
    settings = {
        "secureClientPort": str(port),
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(store),
        "ssl.keyStore.password": PASSWORD,
        "ssl.keyStore.type": "PKCS12",
        "ssl.trustStore.location": str(trusted),
        "ssl.trustStore.password": PASSWORD,
        "ssl.trustStore.type": "PKCS12",
        "ssl.clientAuth": "none",
    }
    with EmbeddedZooKeeper(directory / "data", sync=False, settings=settings):
        yield f"localhost:{port}", certificate


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_session_over_tls_does_what_a_plain_one_does(
    secure: tuple[str, Path], new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    address, certificate = secure

    async def scenario() -> None:
        async with a_client(address, tls=ssl.create_default_context(cafile=certificate)) as (client, _):
            assert isinstance(await client.submit(Create("/a", b"x" * 500_000)), Created)
            answer = await client.submit(GetData("/a"))
            assert isinstance(answer, Data)
            assert answer.data == b"x" * 500_000
            assert await client.submit(Delete("/a", 0)) == Deleted()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scenario())


def test_a_certificate_that_is_not_trusted_is_the_reason_given(secure: tuple[str, Path]) -> None:
    address, certificate = secure

    async def scenario() -> None:
        # The first handshake of a server's life takes long; the limit is for another.
        async with a_client(address, tls=ssl.create_default_context(cafile=certificate)):
            pass
        await ZooKeeperClient.connect(address, tls=ssl.create_default_context(), limit_ms=3_000)

    with pytest.raises(ZooKeeperUnavailable, match="certificate"):
        asyncio.run(scenario())


def test_a_plain_client_at_a_tls_port_gets_no_session(secure: tuple[str, Path]) -> None:
    address, _ = secure

    with pytest.raises(ZooKeeperUnavailable, match="gave no session"):
        asyncio.run(ZooKeeperClient.connect(address, limit_ms=500))
