"""Every broker's candidate for the controller: it tries for ``/controller``, and governs while it has it."""

import logging
from collections.abc import Callable

from ottla.broker.controlling.steps import Fence
from ottla.broker.controlling.term import Term
from ottla.broker.peers.links import PeerLinks
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Owner, Pause, Steps, persistently
from ottla.config.areas import BrokerConfig
from ottla.config.log import LogConfig
from ottla.controller.effects import Decided, Result
from ottla.controller.events import News, Token, UncleanElectionEnabled
from ottla.model.ids import NO_BROKER, BrokerId, TopicId
from ottla.znodes import paths
from ottla.znodes.codec import (
    MalformedZnode,
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Create,
    Data,
    Delete,
    Exists,
    Failed,
    Found,
    GetData,
    Multi,
    MultiDone,
    MultiFailed,
    SetData,
    WatchEvent,
    ZkCode,
)

log = logging.getLogger(__name__)

GIVE_WAY_MS = 1_000
"""How long a controller that could not go on leaves the office to others."""
_SOMEBODY_ELSE_WON = (ZkCode.NODE_EXISTS, ZkCode.BAD_VERSION)


class ControllerHost:
    """The candidate, and while it is in office its term."""

    def __init__(self, runtime: Runtime, links: PeerLinks, decided: Callable[[Decided], None]) -> None:
        """``decided`` hears of every decision that was written."""
        self._runtime = runtime
        self._links = links
        self._decided = decided
        self.active_controller: BrokerId = NO_BROKER
        """Whom ``/controller`` names, as far as this broker has seen."""
        self._term: Term | None = None
        self._campaign = 0
        """Counts sessions and resignations: steps of an earlier one are void."""
        self._may_stand = False
        self._is_resting = False
        self._is_looking = False
        self._must_look_again = False
        runtime.zk.watch(paths.CONTROLLER, self._on_controller_node)

    # ---- what others ask

    @property
    def is_active(self) -> bool:
        """This broker is the controller, as far as it knows; only ZooKeeper knows for sure."""
        return self._term is not None

    @property
    def is_serving(self) -> bool:
        """It has read all that there is: what it does not know does not exist."""
        return self._term is not None and self._term.is_serving

    @property
    def term(self) -> Term | None:
        return self._term

    def ask(
        self, make_event: Callable[[Token], News], then: Callable[[Result | None], None], owner: Owner
    ) -> None:
        """Let the controller decide; ``then`` gets None when this broker is not it, or no longer. Should
        ``then`` fail, its owner hears so."""
        if self._term is None:
            then(None)
        else:
            self._term.ask(make_event, then, owner)

    def when_serving(self, then: Callable[[bool], None]) -> None:
        """``then`` gets True once this controller has read all that there is; False when this broker is not
        the controller, or no longer."""
        if self._term is None:
            then(False)
        else:
            self._term.when_serving(then)

    def topic_name(self, topic_id: TopicId) -> str | None:
        """The topic of that id, as the controller knows it."""
        return None if self._term is None else self._term.core.context.topic_names.get(topic_id)

    def broker_epoch(self, broker: BrokerId) -> int | None:
        """The present epoch of a registered broker, as the controller knows it."""
        if self._term is None:
            return None
        registration = self._term.core.context.brokers.get(broker)
        return None if registration is None else registration.epoch

    # ---- the node's hooks

    def start(self) -> None:
        """The broker is registered: watch ``/controller`` and take part in the election."""
        self._may_stand = True
        self._look()

    def on_new_session(self) -> None:
        """The broker is registered again, with a new broker epoch: take part again."""
        self.start()

    def on_session_expired(self) -> None:
        """The ephemeral ``/controller`` went with the session: end the term."""
        self._void()
        self.active_controller = NO_BROKER
        self._leave("the ZooKeeper session expired")

    def _void(self) -> None:
        self._campaign += 1
        self._may_stand = self._is_looking = self._must_look_again = False

    def on_topic_config_changed(self, topic: str, config: LogConfig) -> None:
        """Unclean elections may be allowed now."""
        if self._term is not None and config.unclean_leader_election_enable:
            self._term.tell(UncleanElectionEnabled(topic))

    def on_broker_config_changed(self, before: BrokerConfig, after: BrokerConfig) -> None:
        """Unclean elections may be allowed now, wherever a topic does not forbid them."""
        is_allowed = after.controller.unclean_leader_election_enable
        if self._term is not None and is_allowed and not before.controller.unclean_leader_election_enable:
            self._term.tell(UncleanElectionEnabled(None))

    def stop(self) -> None:
        """The broker stops: resign and delete ``/controller`` now, the session may last a while yet."""
        self._void()
        self._give_back("the broker stops")

    # ---- resignation

    def _leave(self, reason: str) -> None:
        term, self._term = self._term, None
        if term is not None:
            term.end(reason)

    def _give_back(self, reason: str) -> None:
        """Resign and remove ``/controller``, unless another has been elected already."""
        term = self._term
        self._leave(reason)
        if term is not None and self._runtime.zk.is_connected:
            ops = (term.fence.check, Delete(paths.CONTROLLER, ANY_VERSION))
            self._runtime.zk.submit(Multi(ops), lambda result: None)

    def _on_term_ended(self, reason: str) -> None:
        """The term could not go on: give way, and stand again a little later."""
        log.warning("controller cannot go on broker=%d reason=%s", self._runtime.identity.broker_id, reason)
        self._is_resting = True
        self._runtime.timers.after(GIVE_WAY_MS, self._rested)
        self._give_back(reason)

    def _rested(self) -> None:
        self._is_resting = False
        self._look()

    # ---- election

    def _on_controller_node(self, event: WatchEvent) -> None:
        self._look()

    def _look(self) -> None:
        """See who is controller; if nobody is, try. A hint that comes meanwhile is looked at afterwards."""
        if not self._may_stand or self._is_resting:
            return
        if self._is_looking:
            self._must_look_again = True
            return
        self._is_looking = True
        campaign = self._campaign
        self._runtime.own.spawn(self._election(campaign), lambda fence: self._looked(campaign, fence))

    def _looked(self, campaign: int, fence: Fence | None) -> None:
        if campaign != self._campaign:
            return
        self._is_looking = False
        if fence is not None:
            self.active_controller = self._runtime.identity.broker_id
            self._term = Term(self._runtime, self._links, fence, self._decided, self._on_term_ended)
            self._term.begin()
        if self._must_look_again:
            self._must_look_again = False
            self._look()

    def _election(self, campaign: int) -> Steps[Fence | None]:
        """The fence of a won election; None when somebody is in office, or this session is over."""
        tried: Fence | None = None
        while campaign == self._campaign:
            there = yield from persistently(Exists(paths.CONTROLLER, watch=True))
            if isinstance(there, Found):
                fence, is_settled = yield from self._meet(campaign, tried)
                if is_settled:
                    return fence
                continue
            if campaign != self._campaign:
                return None
            if there.code is not ZkCode.NO_NODE:
                log.error("the controller node is not shown reason=%s", there)
                yield Pause(GIVE_WAY_MS)
                continue
            self._leave("the controller node is gone")
            epoch, version = yield from self._read_epoch()
            if campaign != self._campaign:
                return None
            me = encode_controller(self._runtime.identity.broker_id, self._runtime.clock.wall_ms())
            tried = Fence(epoch + 1, version + 1)
            result = yield Multi(
                (
                    Create(paths.CONTROLLER, me, ephemeral=True),
                    SetData(paths.CONTROLLER_EPOCH, encode_controller_epoch(epoch + 1), version),
                )
            )
            if isinstance(result, MultiDone):
                return tried
            if isinstance(result, Failed | MultiFailed) and result.code not in _SOMEBODY_ELSE_WON:
                log.error("no controller can be elected reason=%s", result)
                yield Pause(GIVE_WAY_MS)
        return None

    def _meet(self, campaign: int, tried: Fence | None) -> Steps[tuple[Fence | None, bool]]:
        """``/controller`` exists: another broker's, our term's, or left over from an election of ours."""
        found = yield from persistently(GetData(paths.CONTROLLER))
        if not isinstance(found, Data) or campaign != self._campaign:
            return None, False
        if found.stat.ephemeral_owner != self._runtime.zk.session_id:
            self._leave("another broker is controller")
            self._note_controller(found)
            return None, True
        if self._term is not None:
            return None, True
        if tried is not None and (yield from self._read_epoch()) == (tried.epoch, tried.version):
            # The answer to our own attempt was lost, and it had succeeded.
            return tried, True
        # Once: a repetition could hit the node of the next controller, whose version is the same.
        yield Delete(paths.CONTROLLER, found.stat.version)
        return None, False

    def _note_controller(self, found: Data) -> None:
        try:
            self.active_controller = decode_controller(found.data).broker
        except MalformedZnode as malformed:
            log.error("the controller node cannot be read reason=%s", malformed)
            self.active_controller = NO_BROKER
        log.info("controller is broker=%d", self.active_controller)

    def _read_epoch(self) -> Steps[tuple[int, int]]:
        while True:
            found = yield from persistently(GetData(paths.CONTROLLER_EPOCH))
            if isinstance(found, Data):
                try:
                    return decode_controller_epoch(found.data), found.stat.version
                except MalformedZnode as malformed:
                    log.error("no controller can be elected reason=%s", malformed)
                    yield Pause(GIVE_WAY_MS)
                    continue
            if found.code is not ZkCode.NO_NODE:
                log.error("the controller epoch is not shown reason=%s", found)
                yield Pause(GIVE_WAY_MS)
                continue
            # Where it was removed by hand: brokers obey no controller of a lower epoch than they have heard.
            heard = encode_controller_epoch(self._runtime.identity.controller_epoch)
            yield from persistently(Create(paths.CONTROLLER_EPOCH, heard))
