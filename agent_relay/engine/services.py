"""Arguments of the engine's parts: services all sessions share, a leg's launch environment, a host.

Of the services nothing belongs to one session. The last screens and usage windows outlive the legs while the
daemon runs: screens go into packets of agents whose own records do not hold their prompts, and windows belong
to the account. `SessionHost` is what the parts of a session know of its host.
"""

import contextlib
import json
import logging
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from agent_relay.agents.adapters import (
    LoadedAdapter,
    find_program,
    fit_installed,
    is_signed_in,
    list_default_roster,
)
from agent_relay.agents.catalog import AdapterCatalog
from agent_relay.agents.user_choices import chooses_session, find_effort
from agent_relay.detect.screen_state import AgentState
from agent_relay.detect.window_usage import LastWindows, find_full
from agent_relay.domain.documents.config import UserConfig, build_roster
from agent_relay.domain.effects import NoteRest
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.events.session import Event
from agent_relay.domain.inputs import Input
from agent_relay.domain.limits import Rest
from agent_relay.domain.protocol.operations import NoticeSender
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.values import UNKNOWN_OWNER, AgentName, Confidential, Owner, replace
from agent_relay.engine.proxy_keeper import ProxyKeeper
from agent_relay.engine.threads import DedicatedThread, ThreadPerHome
from agent_relay.session.decision import Availability, Outcome
from agent_relay.session.handoffs import HEADLESS
from agent_relay.session.rests import add_rest, end_rests, find_rest
from agent_relay.sources.record_dispatch import RecordDispatcher
from agent_relay.store.ledger import read_ledger, update_ledger
from agent_relay.store.usage_windows import read_windows
from agent_relay.system.clock import Clock, create_ulid
from agent_relay.system.config_file import ReloadingConfig, read_project_config
from agent_relay.system.disk.folders import Folders
from agent_relay.terminal.holder_client import HolderCheck, HolderConnection

if TYPE_CHECKING:
    from agent_relay.system.net.webhook import Webhook

_log = logging.getLogger(__name__)


_MOST_SCREENS = 64
_SCREEN_LINES = 60
_OWN_STATES = ("ready", "busy", "asking")


class LastScreen(msgspec.Struct):
    """The last screen an agent showed as its own."""

    screen: str = ""

    def see(self, lines: Sequence[str], state: AgentState) -> None:
        """Record the screen if it is in a state of the agent's own, or if none was recorded yet.

        What it shows after the agent has left is not the agent's any more.
        """
        shown = [line for line in lines if line.strip()]
        if shown and (state in _OWN_STATES or not self.screen):
            self.screen = "\n".join(shown[-_SCREEN_LINES:])


class LastScreens:
    """The last screens by leg. They outlive the legs, not the daemon; the newest 64 are kept."""

    def __init__(self) -> None:
        self._seen: dict[str, LastScreen] = {}

    def note(self, leg_id: str, seen: LastScreen) -> None:
        """Keep the last screen of the leg, and forget the oldest legs beyond the limit."""
        self._seen[leg_id] = seen
        while len(self._seen) > _MOST_SCREENS:
            del self._seen[next(iter(self._seen))]

    def get(self, leg_id: str) -> str:
        """Return the last screen of the leg; empty if another daemon saw it."""
        seen = self._seen.get(leg_id)
        return seen.screen if seen is not None else ""


class OutsideNotifiers:
    """Sends notifications to the desktop and to webhooks, for all sessions.

    No caller waits for the outcome; failures are logged.
    """

    def __init__(self) -> None:
        self._desktop = DedicatedThread("desktop")
        self._webhooks: dict[str, Webhook] = {}

    def post(self, address: str, body: Mapping[str, object]) -> None:
        """Queue `body` for the webhook at `address`."""
        webhook = self._webhooks.get(address)
        if webhook is None:
            # Few have one, and its library takes longer to load than a start may wait.
            from agent_relay.system.net.delivery_report import DeliveryCounter, Receiver
            from agent_relay.system.net.webhook import Webhook

            receiver = Receiver("webhook", "The webhook of `notify`", "notification", "notifications")
            webhook = Webhook(address, DeliveryCounter(receiver, _log_delivery))
            webhook.start()
            self._webhooks[address] = webhook
        webhook.put(body)

    async def show(self, environ: Mapping[str, str], title: str, text: str) -> None:
        """Show a notification on the desktop of that environment, if it has one."""
        from agent_relay.system.net.webhook import show_on_desktop

        with contextlib.suppress(RelayError):
            failed = await self._desktop.run(show_on_desktop, environ, title, text)
            if failed:
                _log.warning("notification-failed to=desktop why=%s", failed)

    def close(self) -> None:
        """Close without waiting for its threads."""
        self._desktop.close()


def _log_delivery(line: str) -> None:
    _log.warning("notification-delivery to=webhook %s", line)


_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Services(msgspec.Struct, frozen=True):
    """Objects that every session shares; none belongs to one.

    `owner` is who owns the daemon, `booted_at` when the machine was started, by the clock of that time. Usage
    is counted in the `counting` threads: every count in one home waits for the same files. `standbys` are the
    legs started ahead of a limit, by session.
    """

    folders: Folders
    clock: Clock
    teller: NoticeSender
    catalog: AdapterCatalog
    followed_config: ReloadingConfig
    zone: tzinfo
    evidence: RecordDispatcher
    report: Callable[[BaseException], None]
    windows: LastWindows = msgspec.field(default_factory=LastWindows)
    last_seen: LastScreens = msgspec.field(default_factory=LastScreens)
    owner: Owner = UNKNOWN_OWNER
    booted_at: datetime = _LONG_AGO
    counting: ThreadPerHome = msgspec.field(default_factory=partial(ThreadPerHome, "counting"))
    holders: HolderCheck = msgspec.field(default_factory=HolderCheck)
    messengers: OutsideNotifiers = msgspec.field(default_factory=OutsideNotifiers)
    proxy: ProxyKeeper | None = None
    standbys: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def adapters(self) -> Mapping[AgentName, LoadedAdapter]:
        """Every adapter that can be used, by its agent's name."""
        return self.catalog.adapters

    @property
    def config(self) -> UserConfig:
        """The user's configuration now, or the last valid one while the file has a mistake."""
        return self.followed_config.get()

    def check_config(self) -> None:
        """Raise ConfigurationError if the file has a mistake now, so that `config` is older than the file."""
        problem = self.followed_config.find_problem()
        if problem is not None:
            raise ConfigurationError(problem.sentence, hint=problem.hint)

    def create_id(self) -> str:
        """Return a new id for a session, leg or handoff."""
        return create_ulid(self.clock)

    def get_adapter(self, agent: str) -> LoadedAdapter:
        """Return the agent's adapter.

        Raises WrongUseError if there is none, ConfigurationError if it was left out because of a mistake in
        it.
        """
        try:
            return self.catalog.get(agent)
        except ConfigurationError as error:
            # Adapters are read once: the file may be right by now.
            hint = "Once it is mended: agent-relay daemon restart"
            raise ConfigurationError(error.sentence, hint=hint) from error

    def fit_installed(self, agent: str, environ: Mapping[str, str]) -> LoadedAdapter:
        """Return the agent's adapter for the installed version. Reads disk; raises as `get_adapter`."""
        return fit_installed(self.get_adapter(agent), environ, self.folders.agent_versions)

    def build_roster(self, agent: str, root: str) -> tuple[str, ...]:
        """Return the agents that a new session in `root` may use, `agent` among them.

        Raises ConfigurationError if a configuration file has a mistake.
        """
        known = list_default_roster(self.adapters)
        roster = build_roster(known, self.config, read_project_config(root))
        return roster if agent in roster else (agent, *roster)

    def withheld_keys(self) -> set[str]:
        """Return the key variables of all agents: each agent gets only its own."""
        return {key for loaded in self.adapters.values() for key in loaded.adapter.keys}

    def read_availability(self, environ: Mapping[str, str]) -> dict[str, Availability]:
        """Return who could take over now, by the ledger, `PATH` and sign-in files in `environ`. Reads disk.

        If the ledger cannot be read, no agent counts as resting: deciding nothing at all would be worse.
        """
        now = self.clock.now()
        try:
            resting = read_ledger(self.folders.ledger)
        except RelayError as error:
            _log.warning("ledger-unreadable why=%s", type(error).__name__)
            resting = ()
        home = environ.get("HOME", "")
        full = find_full(read_windows(self.folders.usage_windows, now))
        return {
            name: replace(_judge(loaded, environ, home, find_rest(resting, name, now)), full=full.get(name))
            for name, loaded in self.adapters.items()
        }

    def note_rest(self, note: NoteRest) -> None:
        """Record the limit in the ledger. Writes disk."""
        now = self.clock.now()
        rest = Rest(
            agent=note.agent,
            model=note.model,
            scope=note.scope,
            until=note.until,
            evidence=note.evidence,
            seen_at=now,
        )
        update_ledger(self.folders.ledger, lambda rests: add_rest(rests, rest, now))

    def end_rests(self, agent: str, model: str, answered_at: datetime) -> None:
        """Record in the ledger that `agent` answered on `model`. Reads disk; writes it if a rest is over."""
        path = self.folders.ledger
        known = read_ledger(path)
        if end_rests(known, agent, model, answered_at) != known:
            update_ledger(path, lambda rests: end_rests(rests, agent, model, answered_at))

    def fresh_native_ids(self, agent: str, args: Sequence[str]) -> dict[str, str]:
        """Return a new native session id for every agent that accepts one.

        None for `agent` if `args` choose its session.
        """
        return {
            name: str(uuid.uuid4())
            for name, loaded in self.adapters.items()
            if loaded.adapter.launch.native_id == "uuid4"
            and not (name == agent and chooses_session(loaded.adapter.launch, args))
        }

    def find_chosen_effort(self, launch: "LaunchEnvironment") -> str:
        """Return the level of effort that the user's arguments name; empty for none."""
        loaded = self.adapters.get(AgentName(launch.agent))
        return find_effort(loaded.adapter.launch, launch.args) if loaded is not None else ""

    def find_efforts(self, chosen: str, leg: Leg | None, launch: "LaunchEnvironment") -> dict[str, str]:
        """Return by agent the level to pass on, `chosen` or else that of `leg`, if it has that level.

        None for an agent whose own arguments, of the command line or the configuration, name one.
        """
        level, found = chosen or (leg.effort if leg is not None else ""), dict[str, str]()
        for name, loaded in self.adapters.items():
            typed = launch.args if name == launch.agent else ()
            own = (*self.config.get_agent(name).args, *typed)
            if level in loaded.adapter.launch.efforts and not find_effort(loaded.adapter.launch, own):
                found[name] = level
        return found

    def find_zone(self, environ: Mapping[str, str]) -> tzinfo:
        """Return the zone the agent shows times in: the user's `TZ`, else the machine's."""
        name = environ.get("TZ", "").removeprefix(":")
        try:
            return ZoneInfo(name) if name and not os.path.isabs(name) else self.zone
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return self.zone


def _judge(loaded: LoadedAdapter, environ: Mapping[str, str], home: str, rest: Rest | None) -> Availability:
    declared = loaded.adapter
    headless = (HEADLESS,) if declared.headless is not None else ()
    return Availability(
        installed=find_program(loaded, environ) is not None,
        signed_in=is_signed_in(loaded.adapter, environ, home),
        resting=rest is not None,
        rests_until=rest.until if rest else None,
        assumed=rest is not None and rest.assumed,
        scope=rest.scope if rest else "",
        capabilities=frozenset((*declared.capabilities, *declared.accepts, *declared.produces, *headless)),
        fault="" if os.path.isdir(loaded.folder) else f"its adapter has gone from {loaded.folder}",
    )


class LaunchEnvironment(Confidential, frozen=True):
    """Data a terminal sent for its legs, kept by the holder in memory so that it never touches the disk.

    `environ` is the user's whole environment; `args` and `model` were given for `agent` alone; `values` are
    what filled the leg's placeholders. `task` is what it is to work on, in the user's own words: the journal
    has them without secrets. `more` is what another version added: it is given to later legs.
    """

    environ: Mapping[str, str]
    agent: str = ""
    rows: int = 24
    cols: int = 80
    args: tuple[str, ...] = ()
    model: str = ""
    values: Mapping[str, str] = msgspec.field(default_factory=dict)
    task: str = ""
    more: Mapping[str, object] = msgspec.field(default_factory=dict)


_FIELDS = {*LaunchEnvironment.__struct_fields__} - {"more"}


async def read_launch_environment(holder: HolderConnection) -> LaunchEnvironment:
    """Return the launch environment of the holder's leg.

    Raises RelayError if the holder kept something else or is gone.
    """
    return parse_launch_environment(await holder.luggage())


def render_launch_environment(launch_environment: LaunchEnvironment, values: Mapping[str, str]) -> str:
    """Return the text a holder keeps of `launch_environment`, with `values` for its leg's placeholders."""
    known = {**msgspec.structs.asdict(launch_environment), "values": dict(values)}
    del known["more"]
    return json.dumps({**launch_environment.more, **known})


def parse_launch_environment(text: str) -> LaunchEnvironment:
    """Parse the text a holder kept, of this version or another one, which may know more or less.

    Raises RelayError if it is something else: without the user's environment nothing can be started.
    """
    try:
        found = json.loads(text)
        known = {name: found.pop(name) for name in _FIELDS & found.keys()}
        launch_environment = LaunchEnvironment(
            **{**known, "args": tuple(known.get("args", ())), "more": found}
        )
    except (ValueError, TypeError, AttributeError, RecursionError):
        launch_environment = None
    environ = launch_environment.environ if launch_environment is not None else None
    if (
        launch_environment is None
        or not isinstance(environ, dict)
        or not all(isinstance(one, str) for one in environ.values())
    ):
        raise RelayError("the holder's copy of the user's environment cannot be read")
    return launch_environment


class SessionHost(Protocol):
    """The host of one session, as whoever performs its effects and monitors its legs sees it."""

    @property
    def session(self) -> Session:
        """The session now."""
        ...

    @property
    def events(self) -> Sequence[Event]:
        """The journal's events."""
        ...

    def tell(self, happened: Input | Outcome) -> None:
        """Queue `happened` to be processed in turn."""
        ...

    async def ask(self, happened: Input | Outcome) -> Session:
        """Return the session after `happened` was journalled. Raise RelayError if it cannot be."""
        ...

    def note_activity(self) -> None:
        """Tell whoever waits for a change that the agent said or showed something."""
        ...
