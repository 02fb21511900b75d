"""``ottla up``: a whole cluster on this machine with one command."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.local.output import tell, tell_at_the_end
from ottla.cli.shared.options import key_values
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.launch.zookeeper.choice import DEFAULT, VARIABLE

if TYPE_CHECKING:
    from ottla.cli.local.console_beside import ConsoleBeside
    from ottla.cli.local.demo import Demo
    from ottla.cli.shared.signals import Stop
    from ottla.launch.cluster import BrokerProcess, Cluster
    from ottla.launch.secure.doors import ClosedDoors
    from ottla.security.secret import Secret

app = typer.Typer(add_completion=False)

LOOK_S = 0.5


@app.command()
def up(
    brokers: Annotated[int, typer.Option(min=1, max=100, help="How many brokers.")] = 3,
    data_dir: Annotated[Path, typer.Option(help="Where all data is kept.")] = Path("ottla-data"),
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65_000,
            help="Where the first broker listens; the others follow. A port in use is replaced by a free one;"
            " `ottla status` shows which. 0: free ports.",
        ),
    ] = 9092,
    zookeeper_port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Where ZooKeeper listens. 0: a free port.")
    ] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of every broker; may be repeated."),
    ] = None,
    racks: Annotated[str, typer.Option(metavar="A,B,…", help="Racks, dealt to the brokers in turn.")] = "",
    zookeeper: Annotated[
        str,
        typer.Option(
            metavar="keeper|apache|HOST:PORT[/PATH]",
            help="The built-in keeper, Apache's ZooKeeper server (needs Java), or servers that run already;"
            f" without it what {VARIABLE} names, or else {DEFAULT}.",
        ),
    ] = "",
    metrics_port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65_000,
            help="Where the first broker shows /metrics and /health; the others follow. 0: nowhere.",
        ),
    ] = 0,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run in the background; `ottla down` stops it.")
    ] = False,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Also write sample orders, and count them with a streaming job on Spark."
        ),
    ] = False,
    console: Annotated[
        bool, typer.Option("--console", help="Also show the cluster in a browser: `ottla console --help`.")
    ] = False,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure",
            help="Let nobody in without TLS and a login: makes certificates, users and ready files for"
            " clients (needs ottla[tls]).",
        ),
    ] = False,
    demo_setup: Annotated[
        str,
        typer.Option(hidden=True, help="A command that installs Spark, run behind the cluster."),
    ] = "",
) -> None:
    """Start ZooKeeper and brokers on this machine (loopback only); Ctrl-C stops them cleanly, data stays.

    Example: `ottla up --brokers 3 --set min.insync.replicas=2`.
    """
    settings = key_values("--set", set_ or [])
    require_known(settings)
    require_unused(data_dir)
    if secure and (demo or console):
        raise UsageRefused(
            "--secure: the demo and the console do not log in yet; leave --demo and --console out"
        )
    if detach:
        from ottla.cli.local.detached import start_detached

        given = [f"--set={name}={value}" for name, value in settings.items()]
        words = ["--brokers", str(brokers), "--data-dir", str(data_dir.absolute()), *given]
        words += ["--demo", "--demo-setup", demo_setup] if demo else []
        words += ["--console"] if console else []
        words += ["--secure"] if secure else []
        words += ["--racks", racks, "--zookeeper", zookeeper, "--metrics-port", str(metrics_port)]
        start_detached(data_dir, [*words, "--port", str(port), "--zookeeper-port", str(zookeeper_port)])
        return

    import faulthandler
    import signal
    import time

    from ottla.cli.shared.signals import stop_once
    from ottla.launch.cluster import Cluster

    faulthandler.register(signal.SIGUSR1, 2)  # `ottla down` asks for it when nothing stops.
    with stop_once() as stop:
        started = time.monotonic()
        cluster = Cluster(
            brokers,
            data_dir=data_dir,
            port=port,
            zookeeper_port=zookeeper_port,
            settings=settings,
            racks=[rack.strip() for rack in racks.split(",") if rack.strip()],
            metrics_port=metrics_port,
            zookeeper=zookeeper or None,
            closed=_closed_doors(data_dir) if secure else None,
        )
        tell(f"starting {brokers} brokers with {cluster.zookeeper}")
        _run(cluster, started, stop, demo_setup if demo else None, with_console=console)
    if stop.asked:
        tell_at_the_end(f"stopped; the data is in {cluster.data_dir}")


def _run(
    cluster: "Cluster", started: float, stop: "Stop", demo_setup: str | None, *, with_console: bool
) -> None:
    """Start a cluster and stay until it is to stop."""
    import time

    from ottla.cli.local.console_beside import forget_address, start_console
    from ottla.cli.local.demo import start_demo
    from ottla.cli.local.state import forget_requests, remove_state

    is_ours = False
    beside: list[Demo | ConsoleBeside] = []
    try:
        cluster.start()
        is_ours = True
        forget_requests(cluster.data_dir)
        forget_address(cluster.data_dir)
        if with_console and (console := start_console(cluster.bootstrap_servers, cluster.data_dir)):
            beside.append(console)
        _write_state(cluster)
        _show(cluster, time.monotonic() - started)
        if demo_setup is not None and (
            demo := start_demo(cluster.bootstrap_servers, cluster.data_dir, demo_setup)
        ):
            beside.append(demo)
        _watch(cluster, beside, stop)
    finally:
        tell_at_the_end("stopping")
        for one in beside:
            one.stop()
        if is_ours:
            remove_state(cluster.data_dir)
        cluster.stop()


def _closed_doors(data_dir: Path) -> "ClosedDoors":
    from ottla.cli.tools.users.work import DEFAULT_ITERATIONS, Wanted, add_in_zookeeper
    from ottla.launch.secure.doors import MECHANISM, ClosedDoors

    def add_user(connect: str, user: str, password: "Secret") -> None:
        add_in_zookeeper(connect, user, Wanted((MECHANISM,), DEFAULT_ITERATIONS, password))

    return ClosedDoors(data_dir.absolute(), add_user)


def require_unused(data_dir: Path) -> None:
    """Refuse a directory on which a cluster runs, before anything is started."""
    from ottla.cli.local.state import is_locked, next_command

    if is_locked(data_dir):
        status, down = next_command("status", data_dir), next_command("down", data_dir)
        raise CommandRefused(
            f"a cluster runs on {data_dir} already; see {status}, stop it with {down},"
            " or name another --data-dir"
        )


def require_known(names: Iterable[str]) -> None:
    """Whoever types a setting means one that exists; a file may hold those of others."""
    import difflib

    from ottla.config.definitions import broker_settings

    known = broker_settings()
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            listed = "`ottla configs --describe --all --broker 0` lists those of a running broker"
            meant = f"did you mean {near[0]}?" if near else listed
            raise UsageRefused(f"--set {name}: there is no such setting; {meant}")


def _write_state(cluster: "Cluster") -> None:
    """A full disk does not end the cluster; `ottla status` is behind then."""
    from ottla.cli.local.state import STATE_NAME, write_state

    try:
        write_state(cluster)
    except OSError as error:
        tell(f"{STATE_NAME} cannot be written: {error.strerror or error}")


def _show(cluster: "Cluster", elapsed_s: float) -> None:
    from ottla.cli.local.console_beside import address_here

    tell(f"ready after {elapsed_s:.1f} s")
    tell(f"  bootstrap.servers  {cluster.bootstrap_servers}")
    tell(f"  zookeeper.connect  {cluster.zookeeper.connect}")
    tell(f"  data               {cluster.data_dir}")
    for file in cluster.client_files:
        tell(f"  for clients        {file}")
    if (address := address_here(cluster.data_dir)) is not None:
        tell(f"  console            {address}")
    tell("Ctrl-C stops it")


def _watch(cluster: "Cluster", beside: "list[Demo | ConsoleBeside]", stop: "Stop") -> None:
    """Tell who is controller, and who ended: nothing is restarted unless somebody asks for it.

    If all brokers were killed, keep running for `ottla restart`; if all ended by themselves, stop.
    """
    from ottla.cli.local.event_lines import EventLines
    from ottla.launch.refusal import LaunchRefused

    told: set[int] = set()
    events = EventLines((broker.broker_id, broker.log) for broker in cluster.brokers)
    while not stop.asked:
        for line in events.news():
            tell(f"{datetime.now().astimezone():%H:%M:%S} {line}")
        for one in beside:
            one.tell_news()
        _serve_requests(cluster)
        ended = list(cluster.ended())
        told.intersection_update([broker.broker_id for broker in ended])
        for broker in ended:
            if broker.broker_id not in told:
                told.add(broker.broker_id)
                tell(_why_it_ended(broker, cluster.data_dir))
                _write_state(cluster)
        if len(told) == len(cluster.brokers) and not all(broker.was_killed for broker in ended):
            raise LaunchRefused(
                "all brokers have ended, for the reasons above; mend them, and start it again"
            )
        if (code := cluster.zookeeper.wait(LOOK_S)) is not None:
            raise LaunchRefused(
                f"ZooKeeper ended by itself with exit code {code}; its log is"
                f" {getattr(cluster.zookeeper, 'log', 'with whoever runs it')}"
            )


def _why_it_ended(broker: "BrokerProcess", data_dir: Path) -> str:
    from ottla.cli.local.state import next_command

    if not broker.was_killed:
        return broker.why_it_ended()
    return f"{broker.why_it_ended()}; {next_command(f'restart {broker.broker_id}', data_dir)} brings it back"


def _serve_requests(cluster: "Cluster") -> None:
    """``ottla restart`` leaves a file; it goes when the broker is known to the others again."""
    from ottla.cli.local.state import asked
    from ottla.launch.refusal import LaunchRefused

    for number, request in asked(cluster.data_dir).items():
        tell(f"restarting broker {number}")
        try:
            if number >= len(cluster.brokers):
                raise LaunchRefused(f"there are only brokers 0 to {len(cluster.brokers) - 1}")
            cluster.brokers[number].stop()
            cluster.start_broker(number)
        except (LaunchRefused, OSError) as failed:
            tell(f"broker {number} was not restarted: {failed}")
        _write_state(cluster)
        request.unlink(missing_ok=True)
