"""The models of the two `config.toml` files: what a user, and more narrowly a project, may decide.

They also say what is exported and to where, and how a user who is not looking is notified: nothing
by default.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Literal, Self, TypeVar

from msgspec import Meta, field

from agent_relay.domain.documents.handwritten import MistakeError, Strict
from agent_relay.domain.limits import (
    NO_WISHES,
    Budget,
    ContextWishes,
    NearLimitWishes,
    QuietHours,
    parse_quiet_hours,
)
from agent_relay.domain.names import DEFAULT_RELAY_KEY, parse_relay_key

_Value = TypeVar("_Value")


def _check_once(key: str, names: Iterable[str]) -> None:
    found = list(names)
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise MistakeError(f"{', '.join(twice)} is there twice", key=key)


def _check(key: str, parse: Callable[[_Value], object], value: _Value) -> None:
    """Raise MistakeError with the sentence of the ValueError that `parse` raises."""
    try:
        parse(value)
    except ValueError as error:
        raise MistakeError(str(error), key=key) from None


_LOOPBACK = r"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])"
_ADDRESS = re.compile(rf"(?:https://[^\s/@?#:]+|http://{_LOOPBACK})(?::[0-9]{{1,5}})?(?:[/?][^\s#]*)?")


def check_address(text: str) -> str:
    """Return `text` if it is an address that data may be sent to; raise ValueError if not.

    https, or http to this machine; no user or password in it, which would appear in process lists and logs.
    """
    if _ADDRESS.fullmatch(text) is None:
        raise ValueError(f"{text[:80]!r} is neither https nor http to this machine, or has a password in it")
    return text


class ExportConfig(Strict, frozen=True):
    """The `[export]` of the user's `config.toml`: what `agent-relay export` does without options.

    `prometheus_port` is where figures are served on 127.0.0.1, `otlp` the collector they are pushed to,
    `webhook` who is told of events; 0 and empty mean nobody. Figures are read every `interval_s` seconds.
    """

    prometheus_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    otlp: str = ""
    webhook: str = ""
    interval_s: Annotated[float, Meta(ge=1, le=3600)] = 30

    def __post_init__(self) -> None:
        """Check the addresses. Raise MistakeError."""
        for key, address in (("otlp", self.otlp), ("webhook", self.webhook)):
            if address:
                _check(key, check_address, address)


NOTIFY_AUTO, NOTIFY_OFF = "auto", "off"
_NOTIFY_WORDS = (NOTIFY_AUTO, NOTIFY_OFF, "bell", "osc", "desktop")
_WEBHOOK_PREFIX = "webhook:"


def check_notify_methods(wishes: tuple[str, ...]) -> tuple[str, ...]:
    """Return `wishes` if they are valid; raise ValueError with a sentence for the user if not."""
    for wish in wishes:
        if wish.startswith(_WEBHOOK_PREFIX):
            check_address(wish.removeprefix(_WEBHOOK_PREFIX))
        elif wish not in _NOTIFY_WORDS:
            known = ", ".join(f'"{one}"' for one in _NOTIFY_WORDS)
            raise ValueError(f'unknown value {wish[:40]!r}; use {known} or "{_WEBHOOK_PREFIX}https://…"')
    if len(set(wishes)) < len(wishes):
        raise ValueError("a value is listed twice")
    if not wishes or (NOTIFY_OFF in wishes and len(wishes) > 1):
        raise ValueError('use "off" alone, or list at least one method')
    return wishes


def find_webhook_addresses(wishes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the addresses of the webhooks among the methods."""
    return tuple(wish.removeprefix(_WEBHOOK_PREFIX) for wish in wishes if wish.startswith(_WEBHOOK_PREFIX))


_LEAST_ALLOWED = 4


class AgentConfig(Strict, frozen=True):
    """The user's wishes for one agent: arguments for every launch, a model, and a packet size in tokens.

    `fallback_model` is what it goes on with where its model is limited and `model_remedy` says so.
    """

    args: tuple[str, ...] = ()
    model: str = ""
    fallback_model: str = ""
    budget_tokens: Annotated[int, Meta(ge=500)] | None = None


class RedactionConfig(Strict, frozen=True):
    """Values that look like secrets and are none: literal texts, and regular expressions for whole values."""

    allow: tuple[str, ...] = ()
    allow_patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that the texts say something, and that the patterns can be used. Raise MistakeError."""
        if any(len(text) < _LEAST_ALLOWED for text in self.allow):
            raise MistakeError(f"a text has at least {_LEAST_ALLOWED} characters", key="allow")
        for pattern in self.allow_patterns:
            try:
                found = re.compile(pattern).fullmatch("")
            except (re.error, RecursionError, OverflowError) as problem:
                why = f"{pattern} is no regular expression: {problem}"
                raise MistakeError(why, key="allow_patterns") from None
            if found:
                raise MistakeError(f"{pattern} matches everything or nothing at all", key="allow_patterns")


class HandoffConfig(Strict, frozen=True):
    """Settings of handoffs: what they leave behind, and what is prepared for them.

    With `save_to_disk`, handoff documents and what an automatic handoff told its successor are also saved
    as `handoff-<time>.md` beside the packets. With `draft_near_limit`, an agent that is near a limit is asked
    for a handoff document at the end of its turn, which costs a part of what it has left. A document is used
    until the user has given its agent more than `fresh_prompts` further prompts. A usage window is near its
    limit from `near_limit_percent` of use on (0: where its adapter says), and with `near_limit_by_rate` also
    when, as fast as it is used now, it would be full before the turn ends. With `digest` "successor",
    the successor's own program writes a handoff document from relay's record before its first turn, without
    tools and within `digest_limit_s`; if it cannot, the handoff goes on without it. With `standby`, the agent
    that would take over is started at a near limit, unseen and without a prompt, so that it is ready then.
    """

    save_to_disk: bool = False
    draft_near_limit: bool = False
    near_limit_percent: Annotated[float, Meta(ge=0, le=100)] = 0
    near_limit_by_rate: bool = True
    fresh_prompts: Annotated[int, Meta(ge=0, le=1000)] = 5
    digest: Literal["off", "successor"] = "off"
    digest_limit_s: Annotated[float, Meta(gt=0, le=120)] = 120
    standby: bool = False

    def build_near_wishes(self) -> NearLimitWishes:
        """Return when a usage window is near its limit, for the detector."""
        return NearLimitWishes(self.near_limit_percent, self.near_limit_by_rate)


class ContextConfig(Strict, frozen=True):
    """Actions when an agent's context fills up: none unless `mode` says so.

    The marks are percent of the room it has until it compacts by itself: at `advise` the user is told, at
    `draft` the agent writes a handoff document (mode handoff), at `act` it is handed over, told to compact,
    or the user is asked to, at the end of a turn. `ceiling` puts the mark `act` at a number of tokens, where
    that is lower, and the others below it in proportion. Nothing is done again about the same conversation
    before it fell below `rearm`, nor about any within `cooldown_s`. `to` is who takes over: "same" is a new
    conversation of the same agent, "next" the next one of the order, anything else an agent's name.
    """

    mode: Literal["off", "handoff", "compact", "ask"] = "off"
    advise: Annotated[float, Meta(gt=0, le=100)] = NO_WISHES.advise
    draft: Annotated[float, Meta(gt=0, le=100)] = NO_WISHES.draft
    act: Annotated[float, Meta(gt=0, le=100)] = NO_WISHES.act
    rearm: Annotated[float, Meta(gt=0, le=100)] = NO_WISHES.rearm
    ceiling: Annotated[int, Meta(ge=0)] = 0
    cooldown_s: Annotated[float, Meta(ge=0, le=86400)] = NO_WISHES.cooldown.total_seconds()
    to: str = "same"

    def __post_init__(self) -> None:
        """Check that the marks rise. Raise MistakeError."""
        if not self.rearm < self.advise <= self.draft <= self.act:
            raise MistakeError("the marks must rise: rearm, advise, draft, act")

    def build_wishes(self) -> ContextWishes:
        """Return the same for the state machine."""
        return ContextWishes(
            mode=self.mode,
            advise=self.advise,
            draft=self.draft,
            act=self.act,
            rearm=self.rearm,
            ceiling=self.ceiling,
            cooldown=timedelta(seconds=self.cooldown_s),
            to=self.to,
        )


_LEAST_DOLLARS = Decimal("0.01")
"""The least that can be told."""
_MOST_DOLLARS = Decimal(1_000_000)


class BudgetConfig(Strict, frozen=True):
    """So much may be used in a session, or on a day by everything on this machine: `tokens` or `dollars`.

    `agent` narrows it to one. The user is told at `warn` percent. What happens when it is used up, `then`
    says: warn tells once more, handoff has another agent take over (for which the agent has to be named),
    stop ends the session.
    """

    per: Literal["session", "day"]
    agent: str = ""
    tokens: Annotated[int, Meta(gt=0)] | None = None
    dollars: Decimal | None = None
    warn: Annotated[float, Meta(gt=0, le=100)] = 80
    then: Literal["warn", "handoff", "stop"] = "warn"

    def __post_init__(self) -> None:
        """Check that it says how much of what, and who gives way. Raise MistakeError."""
        if (self.tokens is None) == (self.dollars is None):
            raise MistakeError("a budget has either tokens or dollars")
        if self.dollars is not None and not (
            self.dollars.is_finite() and _LEAST_DOLLARS <= self.dollars <= _MOST_DOLLARS
        ):
            raise MistakeError(f"it must be from {_LEAST_DOLLARS} to {_MOST_DOLLARS}", key="dollars")
        if self.then == "handoff" and not self.agent:
            raise MistakeError('then = "handoff" needs the agent that is to give way')

    def build_budget(self) -> Budget:
        """Return the same for the state machine."""
        return Budget(self.per, self.agent, self.tokens or 0, self.dollars, self.warn, self.then)


class UserConfig(Strict, frozen=True):
    """The user's `config.toml`.

    `order` is the roster, preferred first; empty means every agent we have an adapter for, except the
    scripted ones. `patience_s` is how long an agent may plan to wait before that counts as a limit.
    `return` is what happens when a preferred agent's window resets, `reset_grace_s` how long after a reset an
    agent is not asked yet; `notify` how a person who looks elsewhere is told of what happens;
    `resume_at_reset` whether work goes on by itself when everybody rested, `quiet_hours` when nothing does;
    `agent_tools` whether agents are given relay's tools, if their library is installed;
    `model_remedy` what a limit of one model leads to: the next agent, or the same one with its
    `fallback_model`, where it has one. With `proxy`, agents' requests to their providers pass through relay's
    proxy on this machine.
    """

    order: tuple[str, ...] = ()
    patience_s: Annotated[float, Meta(gt=0, le=86400)] = 300
    return_: Literal["offer", "auto", "off"] = field(default="offer", name="return")
    reset_grace_s: Annotated[float, Meta(ge=0, le=3600)] = 30
    notify: tuple[str, ...] = (NOTIFY_AUTO,)
    resume_at_reset: Literal["ask"] | bool = "ask"
    quiet_hours: str = ""
    proxy: bool = False
    relay_key: str = DEFAULT_RELAY_KEY
    model_remedy: Literal["handoff", "model"] = "handoff"
    agent_tools: bool = True
    agents: dict[str, AgentConfig] = field(default_factory=dict)
    handoff: HandoffConfig = HandoffConfig()
    context: ContextConfig = ContextConfig()
    redaction: RedactionConfig = RedactionConfig()
    export: ExportConfig = ExportConfig()
    budgets: tuple[BudgetConfig, ...] = ()

    @classmethod
    def parse(cls, tables: Mapping[str, object]) -> Self:
        """Return the configuration in `tables`. Raise MistakeError. One method of `notify` needs no list."""
        wish = tables.get("resume_at_reset", "ask")
        if wish != "ask" and not isinstance(wish, bool):
            raise MistakeError('it must be "ask", true or false', key="resume_at_reset")
        method = tables.get("notify")
        return super().parse({**tables, "notify": (method,)} if isinstance(method, str) else tables)

    def __post_init__(self) -> None:
        """Check what no type says: words, and what may be there once only. Raise MistakeError."""
        _check_once("order", self.order)
        _check("notify", check_notify_methods, self.notify)
        _check("quiet_hours", parse_quiet_hours, self.quiet_hours)
        _check("relay_key", parse_relay_key, self.relay_key)
        _check_once("budgets", (budget.build_budget().name for budget in self.budgets))

    @property
    def may_ever_continue(self) -> bool:
        """True if there is an hour of the day at which an agent may go on by itself after its limit."""
        return self.resume_at_reset is not False and not self.build_quiet_hours().always

    def build_quiet_hours(self) -> QuietHours:
        """Return the hours in which nothing goes on by itself."""
        return parse_quiet_hours(self.quiet_hours)

    def list_names(self) -> dict[str, str]:
        """Return every agent that is named, with the first place in the file that names it."""
        named = [(name, "order") for name in self.order]
        named += [(name, f"agents.{name}") for name in self.agents]
        named += [(budget.agent, "budgets") for budget in self.budgets]
        named += [(self.context.to, "context.to")] if self.context.to not in {"same", "next"} else []
        return {name: place for name, place in reversed(named) if name}

    def build_budgets(self) -> tuple[Budget, ...]:
        """Return the budgets for the state machine."""
        return tuple(budget.build_budget() for budget in self.budgets)

    def get_agent(self, name: str) -> AgentConfig:
        """Return the settings for one agent; the defaults if the file has none."""
        return self.agents.get(name, AgentConfig())

    def find_fallbacks(self, agent: str = "", model: str = "") -> dict[str, str]:
        """Return another model for each agent that may use one when its own is limited.

        `model` is the one that was asked for when `agent` was started, in place of the configured one.
        """
        if self.model_remedy != "model":
            return {}
        found = {}
        for name, wishes in self.agents.items():
            own = (model if name == agent else "") or wishes.model
            if wishes.fallback_model and wishes.fallback_model != own:
                found[name] = wishes.fallback_model
        return found


class ProjectConfig(Strict, frozen=True):
    """A project's `.agent-relay/config.toml`: it comes with a clone, so it may only order and leave out."""

    order: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that no agent is there twice. Raise MistakeError."""
        _check_once("order", self.order)


def build_roster(known: tuple[str, ...], user: UserConfig, project: ProjectConfig) -> tuple[str, ...]:
    """Return the agents allowed here, preferred first.

    `known` is the roster if the user sets none. A project reorders and leaves out; an agent the user did not
    allow stays out, and a project's order that would leave no agent is ignored.
    """
    allowed = user.order or known
    narrowed = tuple(name for name in project.order if name in allowed)
    return narrowed or allowed
