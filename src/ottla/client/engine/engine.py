"""The client's engine: tasks, connections to all brokers, fresh metadata. It never blocks and does no I/O.

An edge reports what happened (``link_connected``, ``frame_came``, ``link_lost``, ``tick``), then performs
``take_outputs()``. A frame is valid only during the call: an operation copies what it needs before it waits
again, or keeps the frame (``keep_frame``).
"""

from random import Random
from typing import Any

from ottla.client.config import ClientConfig
from ottla.client.engine.link import Link, LinkState
from ottla.client.engine.metadata import Metadata
from ottla.client.engine.outputs import Output
from ottla.client.engine.tasks import (
    ANY_BROKER,
    AnyBroker,
    Ask,
    BrokerLane,
    Operation,
    Scheduler,
    Signal,
    Task,
    ask,
    sleep,
    wait_for,
)
from ottla.client.errors import ClientClosed, ClientError, ConnectionLost, LoginFailed
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse


class Engine(Scheduler):
    """What producer, fetcher and admin operations share."""

    def __init__(self, config: ClientConfig, now_ms: int, random: Random) -> None:
        super().__init__(now_ms)
        self.config = config
        self.random = random
        self.metadata = Metadata()
        self.outputs: list[Output] = []
        self.metadata_came = Signal()
        """Fires when a broker has answered a request for metadata."""
        self.metadata_error: ClientError | None = None
        """Why the last refresh failed; ``None`` if it succeeded."""
        self._wanted_topics: set[str] = set()
        self._is_refresh_wanted = False
        self._refresh_wanted = Signal()
        self._new_topics = Signal()
        self._links: dict[int, Link] = {}
        self._links_by_broker: dict[int | BrokerLane, Link] = {}
        self._bootstrap_links: list[Link] = []
        self._next_link_id = 0
        self._is_frame_kept = False
        for host, port in config.bootstrap_servers:
            self._bootstrap_links.append(self._new_link(host, port))
        self.spawn(self._keep_metadata())

    # From the edge

    def link_connected(self, link_id: int) -> None:
        """The edge has opened a link."""
        link = self._links.get(link_id)
        if link is not None and link.state is LinkState.OPENING:
            link.connected()
        self.run()

    def frame_came(self, link_id: int, frame: memoryview) -> bool:
        """A response arrived on a link; whether an operation keeps the frame."""
        self._is_frame_kept = False
        link = self._links.get(link_id)
        if link is not None and link.state not in (LinkState.CLOSED, LinkState.OPENING):
            link.frame_came(frame)
        self.run()
        return self._is_frame_kept

    def keep_frame(self) -> None:
        """An operation keeps the frame of its response: the edge must not reuse that memory."""
        self._is_frame_kept = True

    def link_lost(self, link_id: int, reason: str) -> None:
        """A link was closed by the broker, or could not be opened."""
        link = self._links.get(link_id)
        if link is not None and link.state is not LinkState.CLOSED:
            link.lost(reason)
        self.run()

    def tick(self, now_ms: int) -> None:
        """Time has passed."""
        self.advance(now_ms)
        for link in list(self._links.values()):
            if (deadline := link.deadline_ms) is not None and deadline <= self.now_ms:
                link.check()
        self.run()

    def take_outputs(self) -> list[Output]:
        """The outputs since the last call, for the edge to perform."""
        outputs, self.outputs = self.outputs, []
        return outputs

    def next_tick_ms(self) -> int | None:
        """The time of the next ``tick``, if nothing happens before."""
        deadlines = [d for link in self._links.values() if (d := link.deadline_ms) is not None]
        if (timer := self.next_deadline_ms()) is not None:
            deadlines.append(timer)
        return min(deadlines, default=None)

    def close(self) -> None:
        """Close all connections; every waiting task gets ``ClientClosed``."""
        for link in self._links.values():
            link.close(ClientClosed("the client was closed"))
        self.end_all()

    # Asking brokers

    def on_ask(self, task: Task[Any], step: Ask) -> None:
        """Hand a task's request to the link of its target."""
        link = self._any_link() if isinstance(step.target, AnyBroker) else self._link_to(step.target)
        if link is None:
            self.resume(task, task.turn, ConnectionLost(f"the address of broker {step.target} is not known"))
        else:
            link.request(step, task)

    def backoff_ms(self, attempts: int) -> int:
        """The pause before the next attempt: it doubles each time, with jitter."""
        ms = self.config.retry_backoff_ms << min(max(attempts - 1, 0), 20)
        ms = min(ms, self.config.retry_backoff_max_ms)
        return round(ms * self.random.uniform(0.8, 1.2))

    def pause(self, attempts: int, deadline_ms: int) -> Operation[None]:
        """Sleep before the next attempt, but not beyond a deadline."""
        yield from sleep(max(0, min(self.backoff_ms(attempts), deadline_ms - self.now_ms)))

    def _new_link(self, host: str, port: int) -> Link:
        self._next_link_id += 1
        link = Link(self._next_link_id, host, port, self.config, self)
        self._links[link.id] = link
        return link

    def _link_to(self, target: int | BrokerLane) -> Link | None:
        broker = target.broker if isinstance(target, BrokerLane) else target
        known = self.metadata.brokers.get(broker)
        link = self._links_by_broker.get(target)
        if known is None:
            return link
        if link is None or link.address != (known.host, known.port):
            if link is not None:
                link.close(ConnectionLost(f"broker {broker} moved to {known.host}:{known.port}"))
                del self._links[link.id]
            link = self._links_by_broker[target] = self._new_link(known.host, known.port)
        return link

    def _any_link(self) -> Link:
        """The ready link with the fewest requests; else an opening one; else one with the fewest failures.

        So every broker is tried before one that does not answer is tried again.
        """
        links = [link for broker in self.metadata.brokers if (link := self._link_to(broker)) is not None]
        links += self._bootstrap_links
        ready = [link for link in links if link.state is LinkState.READY]
        if ready:
            return min(ready, key=lambda link: link.load)
        under_way = [link for link in links if link.state is not LinkState.CLOSED]
        if under_way:
            return min(under_way, key=lambda link: link.load)
        soonest = min(max(link.may_open_at_ms, self.now_ms) for link in links)
        openable = [link for link in links if link.may_open_at_ms <= soonest]
        fewest = min(link.failures for link in openable)
        return self.random.choice([link for link in openable if link.failures == fewest])

    # Metadata

    def want_topics(self, *names: str) -> None:
        """Keep the metadata of these topics fresh; new ones are requested at once."""
        new = [name for name in names if name not in self._wanted_topics]
        if new:
            self._wanted_topics.update(new)
            self.refresh_soon()
            self.fire(self._new_topics)

    def refresh_soon(self) -> None:
        """The metadata may be stale: request them, unless a request is in flight."""
        self._is_refresh_wanted = True
        self.fire(self._refresh_wanted)

    def refresh(self, deadline_ms: int) -> Operation[bool]:
        """Wait for metadata that is newer than now; whether it came in time.

        Whoever is not let in learns it at once: waiting does not mend a password.
        """
        before = self.metadata.version
        self.refresh_soon()
        while self.metadata.version == before:
            if self.now_ms >= deadline_ms:
                return False
            yield from wait_for(self.metadata_came, deadline_ms - self.now_ms)
            if isinstance(self.metadata_error, LoginFailed):
                raise self.metadata_error
        return True

    def _keep_metadata(self) -> Operation[None]:
        failures = 0
        while True:
            if not self._is_refresh_wanted:
                max_age_ms = self.config.metadata_max_age_ms if self.metadata.version else None
                yield from wait_for(self._refresh_wanted, max_age_ms)
            self._is_refresh_wanted = False
            topics = [MetadataRequestTopic(name=name) for name in sorted(self._wanted_topics)]
            request = MetadataRequest(
                topics=topics, allow_auto_topic_creation=self.config.allow_auto_create_topics
            )
            try:
                response = yield from ask(ANY_BROKER, request, MetadataResponse)
            except ClientClosed:
                return
            except ClientError as error:
                self.metadata_error = error
                self._is_refresh_wanted = True
                failures += 1
            else:
                self.metadata.merge(response)
                self.metadata_error = None
                failures = 0
            self.fire(self.metadata_came)
            # The next refresh waits, except for topics that this one did not request.
            yield from wait_for(self._new_topics, self.backoff_ms(failures))
