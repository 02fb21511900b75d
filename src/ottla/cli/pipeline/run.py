"""``ottla pipeline run NAME``: one command a job, with the options that the job has."""

import importlib
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.pipeline.session import (
    LOCAL,
    a_session,
    interruptible,
    refusals_by_flags,
    refusals_in_one_sentence,
)
from ottla.cli.shared.options import DEFAULT_BOOTSTRAP, BootstrapServer
from ottla.cli.shared.refusal import UsageRefused

if TYPE_CHECKING:
    from ottla.spark.jobs.shared.report import Progress, Report

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Run a job.\n\nExample: `ottla pipeline run audit --topics orders`.",
)

Master = Annotated[str, typer.Option(help="Spark's master; our code is shipped to its executors.")]
Follow = Annotated[
    float | None,
    typer.Option("--follow", min=0, help="Go on, with a batch every so many seconds; Ctrl-C ends it."),
]
WITHOUT_KAFKA = ("audit", "elections", "losses")
"""Jobs that take no settings of the client."""
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf", help="A setting NAME=VALUE, Spark's (spark.*) or the client's (kafka.*); repeatable."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be read, and write nothing.")]
Topics = Annotated[str, typer.Option(help="Which topics, separated by commas.")]
Starting = Annotated[
    str, typer.Option(help="Where the first run begins: earliest, latest, '-1 day', or offsets as JSON.")
]
BatchSize = Annotated[int, typer.Option(min=1, help="About so many records a batch.")]
FileSize = Annotated[int, typer.Option(min=1, help="At most so many records a file.")]
Checkpoint = Annotated[str, typer.Option(help="Where the job keeps how far it is.")]


@app.command()
def archive(
    ctx: typer.Context,
    topics: Topics,
    directory: Annotated[str, typer.Option("--to", help="The directory of the Parquet files, or its URI.")],
    starting_offsets: Starting = "earliest",
    max_offsets_per_batch: BatchSize = 5_000_000,
    max_records_per_file: FileSize = 5_000_000,
    bootstrap_servers: BootstrapServer = DEFAULT_BOOTSTRAP,
    master: Master = LOCAL,
    follow_s: Follow = None,
    conf: Conf = None,
    dry_run: DryRun = False,
) -> None:
    """Topics into partitioned Parquet, each record once; a further run adds what is new.

    Example: `ottla pipeline run archive --topics orders --to /tmp/archive`.
    """
    _run(ctx)


@app.command()
def lake(
    ctx: typer.Context,
    topics: Topics,
    table: Annotated[
        str,
        typer.Option("--to", help="The Delta table's directory or URI; Iceberg's CATALOG.NAMESPACE.TABLE."),
    ],
    format: Annotated[str, typer.Option(help="delta or iceberg.")] = "delta",
    starting_offsets: Starting = "earliest",
    max_offsets_per_batch: BatchSize = 5_000_000,
    max_records_per_file: FileSize = 5_000_000,
    bootstrap_servers: BootstrapServer = DEFAULT_BOOTSTRAP,
    master: Master = LOCAL,
    follow_s: Follow = None,
    conf: Conf = None,
    dry_run: DryRun = False,
) -> None:
    """Topics into a Delta or Iceberg table, each record once; a further run adds what is new.

    Example: `ottla pipeline run lake --topics orders --to /data/orders`.
    """
    _run(ctx)


@app.command()
def replay(
    ctx: typer.Context,
    directory: Annotated[str, typer.Option("--from", help="The directory of an archive.")],
    topic: Annotated[str, typer.Option(help="The topic to write to.")],
    source_topic: Annotated[str | None, typer.Option(help="Only what was archived from this topic.")] = None,
    by_key: Annotated[bool, typer.Option(help="Choose partitions by key instead of by number.")] = False,
    since: Annotated[
        str | None, typer.Option(help="Only records of this time or later: 2026-03-01T12:00, in UTC.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only records before this time.")] = None,
    where: Annotated[
        str | None, typer.Option(help="Only records of which this SQL is true, like 'offset < 100'.")
    ] = None,
    bootstrap_servers: BootstrapServer = DEFAULT_BOOTSTRAP,
    master: Master = LOCAL,
    conf: Conf = None,
    dry_run: DryRun = False,
) -> None:
    """An archive back into a topic, each partition in its order.

    Example: `ottla pipeline run replay --from /tmp/archive --topic again`.
    """
    _run(ctx)


@app.command()
def validate(
    ctx: typer.Context,
    topic: Annotated[str, typer.Option(help="The topic with JSON values.")],
    schema: Annotated[str, typer.Option(help="Spark's DDL: 'id BIGINT NOT NULL, name STRING'.")],
    dead_letter_topic: Annotated[str, typer.Option(help="Where bad records go, with their cause.")],
    checkpoint: Checkpoint,
    valid_topic: Annotated[str | None, typer.Option(help="Where good records go, if anywhere.")] = None,
    bootstrap_servers: BootstrapServer = DEFAULT_BOOTSTRAP,
    master: Master = LOCAL,
    follow_s: Follow = None,
    conf: Conf = None,
) -> None:
    """JSON records against a schema; bad ones with their cause to a dead-letter topic.

    Example: `ottla pipeline run validate --topic orders --schema 'id BIGINT NOT NULL' --dead-letter-topic bad
    --checkpoint /tmp/validate`.
    """
    _run(ctx)


@app.command()
def aggregate(
    ctx: typer.Context,
    topic: Annotated[str, typer.Option(help="The topic to read.")],
    to_topic: Annotated[str, typer.Option(help="The topic for the windows.")],
    checkpoint: Checkpoint,
    window: Annotated[str, typer.Option(help="How long a window is.")] = "1 minute",
    watermark: Annotated[str, typer.Option(help="How late a record may come.")] = "1 minute",
    group_by: Annotated[str | None, typer.Option(help="A field of the JSON value; else the key.")] = None,
    sum_of: Annotated[str | None, typer.Option(help="A field of the JSON value to sum up.")] = None,
    bootstrap_servers: BootstrapServer = DEFAULT_BOOTSTRAP,
    master: Master = LOCAL,
    follow_s: Follow = None,
    conf: Conf = None,
) -> None:
    """Counts and sums per time window, from topic to topic.

    Example: `ottla pipeline run aggregate --topic orders --to-topic counts --checkpoint /tmp/counts`.
    """
    _run(ctx)


@app.command()
def audit(
    ctx: typer.Context,
    topics: Annotated[
        str | None, typer.Option(help="Which topics; all but internal ones if not given.")
    ] = None,
    bootstrap_servers: BootstrapServer = DEFAULT_BOOTSTRAP,
    master: Master = LOCAL,
    conf: Conf = None,
) -> None:
    """Compare every replica of every partition, batch by batch; exit code 1 if one differs.

    Example: `ottla pipeline run audit --topics orders`.
    """
    _run(ctx)


@app.command()
def elections(
    ctx: typer.Context,
    picture: Annotated[str | None, typer.Option(help="Write a picture to this HTML file.")] = None,
    bootstrap_servers: BootstrapServer = DEFAULT_BOOTSTRAP,
    master: Master = LOCAL,
    conf: Conf = None,
) -> None:
    """Who was elected, why, and how long partitions had no leader.

    Example: `ottla pipeline run elections --picture elections.html`.
    """
    _run(ctx)


@app.command()
def losses(
    ctx: typer.Context,
    topics: Annotated[str | None, typer.Option(help="Which topics; all if not given.")] = None,
    directory: Annotated[
        str | None, typer.Option("--archive", help="An archive that may hold what is gone.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Write what the archive holds of it back, once.")
    ] = False,
    bootstrap_servers: BootstrapServer = DEFAULT_BOOTSTRAP,
    master: Master = LOCAL,
    conf: Conf = None,
) -> None:
    """What unclean elections took, and which groups have read it; exit code 1 if there is anything.

    Example: `ottla pipeline run losses --archive /data/archive`.
    """
    _run(ctx)


@app.command()
def plan(
    ctx: typer.Context,
    file: Annotated[str, typer.Option("--to", help="The JSON file for ottla reassign-partitions.")],
    moves_max: Annotated[int, typer.Option("--moves", min=0, help="At most so many replicas move.")] = 10,
    weights: Annotated[
        str | None, typer.Option(help="What partitions weigh: a file of hot, not their size on disk.")
    ] = None,
    bootstrap_servers: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """A reassignment that evens out leaders and bytes with few moves. It needs no Spark.

    Example: `ottla pipeline run plan --to plan.json`.
    """
    _run_without_spark(ctx)


@app.command()
def availability(
    ctx: typer.Context,
    topics: Annotated[str | None, typer.Option(help="Which topics; all if not given.")] = None,
    bootstrap_servers: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """Minutes without a leader or below min ISR, by cause; exit code 1 while one lasts. It needs no Spark.

    Example: `ottla pipeline run availability --topics orders`.
    """
    _run_without_spark(ctx)


@app.command()
def hot(
    ctx: typer.Context,
    topics: Topics,
    starting_offsets: Annotated[
        str, typer.Option(help="From where on: earliest, '-1 hour', or offsets as JSON.")
    ] = "earliest",
    window: Annotated[str, typer.Option(help="How long a span of time is.")] = "10 minutes",
    file: Annotated[str | None, typer.Option("--to", help="A JSON file of weights for the job plan.")] = None,
    bootstrap_servers: BootstrapServer = DEFAULT_BOOTSTRAP,
    master: Master = LOCAL,
    conf: Conf = None,
) -> None:
    """Which partitions and keys carry the bytes, and when.

    Example: `ottla pipeline run hot --topics orders --starting-offsets '-1 hour' --to weights.json`.
    """
    _run(ctx)


def _run_without_spark(ctx: typer.Context) -> None:
    """Run the command's job, which asks the cluster and nobody else."""
    name = str(ctx.command.name)

    def work(options: dict[str, Any], progress: "Progress") -> "Report":
        with refusals_by_flags(options):
            job = importlib.import_module(f"ottla.spark.jobs.{name}")
            made = getattr(job, f"{name.capitalize()}Options")(**options)
            job.check(made)
            report: Report = job.run(made, progress)
            return report

    _tell(work, ctx.params)


def require_master(master: str) -> None:
    """Refuse a master that Spark does not know: Java would end with a stack."""
    if master not in ("local", "yarn") and not master.startswith(
        ("local[", "local-cluster[", "spark://", "k8s://")
    ):
        raise UsageRefused(
            f"--master {master!r} is none of Spark's: local[*], spark://host:port, yarn, k8s://..."
        )


def read_conf(given: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Spark's settings, and those of the client, out of what ``--conf`` was given."""
    settings: dict[str, dict[str, str]] = {"spark": {}, "kafka": {}}
    for one in given:
        name, found, value = one.partition("=")
        kind = name.partition(".")[0]
        if not found or kind not in settings:
            raise UsageRefused(f"--conf {name!r} is no setting: write spark.NAME=VALUE or kafka.NAME=VALUE")
        if name == "kafka.bootstrap.servers":
            raise UsageRefused("--conf kafka.bootstrap.servers is said with --bootstrap-server")
        settings[kind][name] = value
    return settings["spark"], settings["kafka"]


def _run(ctx: typer.Context) -> None:
    """Start Spark if nothing is wrong, and run the command's job on it.

    The parameters of a command, but for the master, are named as the fields of its job's options.
    """
    options = dict(ctx.params)
    name, master = str(ctx.command.name), options.pop("master")
    require_master(master)
    settings, kafka = read_conf(options.pop("conf") or ())
    if name in WITHOUT_KAFKA:
        if kafka:
            raise UsageRefused(f"--conf {next(iter(kafka))}: the job {name} takes settings of Spark alone")
    else:
        options["kafka"] = kafka

    def work(options: dict[str, Any], progress: "Progress") -> "Report":
        with refusals_in_one_sentence(options):
            job = importlib.import_module(f"ottla.spark.jobs.{name}")
            made = getattr(job, f"{name.capitalize()}Options")(**options)
            job.check(made)
            progress.tell(f"starting Spark on {master}")
            began = time.monotonic()
            with a_session(master, f"ottla {name}", settings=settings) as spark:
                progress.tell(f"Spark runs after {time.monotonic() - began:.0f} s")
                report: Report = job.run(spark, made, progress)
                return report

    _tell(work, options)


def _tell(work: Callable[[dict[str, Any], "Progress"], "Report"], options: dict[str, Any]) -> None:
    """Do a job's work on a cluster that answers, print its report; a refusal is one sentence."""
    from ottla.cli.shared.connection import connected, servers_here
    from ottla.spark.jobs.shared.report import Progress

    options["bootstrap_servers"] = options["bootstrap_servers"] or servers_here()
    progress = Progress(typer.echo)

    def on_a_cluster() -> "Report":
        with connected(options["bootstrap_servers"]):
            pass  # Where nobody answers, the command says so at once; Spark would try for a minute.
        return work(options, progress)

    report = interruptible(on_a_cluster, lambda: progress.left)
    for line in report.lines():
        typer.echo(line)
    if not report.is_well:
        raise typer.Exit(1)
