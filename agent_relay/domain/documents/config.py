"""The models of the two `config.toml` files: what a user, and more narrowly a project, may decide.

They also say what is exported and to where, and how a user who is not looking is notified: nothing
by default.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from agent_relay.domain.documents.document import Strict
from agent_relay.domain.limits import (
    NO_WISHES,
    Budget,
    ContextWishes,
    NearLimitWishes,
    QuietHours,
    parse_quiet_hours,
)
from agent_relay.domain.names import DEFAULT_RELAY_KEY, parse_relay_key

_LOOPBACK = r"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])"
_ADDRESS = re.compile(rf"(?:https://[^\s/@?#:]+|http://{_LOOPBACK})(?::[0-9]{{1,5}})?(?:[/?][^\s#]*)?")


def check_address(text: str) -> str:
    """Return `text` if it is an address that data may be sent to; raise ValueError if not.

    https, or http to this machine; no user or password in it, which would appear in process lists and logs.
    """
    if _ADDRESS.fullmatch(text) is None:
        raise ValueError(f"{text[:80]!r} is neither https nor http to this machine, or has a password in it")
    return text


_Address = Annotated[str, AfterValidator(lambda text: check_address(text) if text else text)]


class ExportConfig(Strict):
    """The `[export]` of the user's `config.toml`: what `agent-relay export` does without options.

    `prometheus_port` is where figures are served on 127.0.0.1, `otlp` the collector they are pushed to,
    `webhook` who is told of events; 0 and empty mean nobody. Figures are read every `interval_s` seconds.
    """

    prometheus_port: int = Field(default=0, ge=0, le=65535)
    otlp: _Address = ""
    webhook: _Address = ""
    interval_s: float = Field(default=30, ge=1, le=3600)


NOTIFY_AUTO, NOTIFY_OFF = "auto", "off"
_NOTIFY_WORDS = (NOTIFY_AUTO, NOTIFY_OFF, "bell", "osc", "desktop")
_WEBHOOK_PREFIX = "webhook:"


def list_notify_methods(value: object) -> object:
    """Return a single method as a list of one, as the file may have it; anything else as it is."""
    return (value,) if isinstance(value, str) else value


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


class AgentConfig(Strict):
    """The user's wishes for one agent: arguments for every launch, a model, and a packet size in tokens.

    `fallback_model` is what it goes on with where its model is limited and `model_remedy` says so.
    """

    args: tuple[str, ...] = ()
    model: str = ""
    fallback_model: str = ""
    budget_tokens: int | None = Field(default=None, ge=500)


class RedactionConfig(Strict):
    """Values that look like secrets and are none: literal texts, and regular expressions for whole values."""

    allow: tuple[str, ...] = ()
    allow_patterns: tuple[str, ...] = ()

    @field_validator("allow")
    @classmethod
    def _texts_say_something(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        if any(len(text) < _LEAST_ALLOWED for text in texts):
            raise ValueError(f"a text has at least {_LEAST_ALLOWED} characters")
        return texts

    @field_validator("allow_patterns")
    @classmethod
    def _patterns_can_be_used(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                found = re.compile(pattern).fullmatch("")
            except (re.error, RecursionError, OverflowError) as problem:
                raise ValueError(f"{pattern} is no regular expression: {problem}") from None
            if found:
                raise ValueError(f"{pattern} matches everything or nothing at all")
        return patterns


class HandoffConfig(Strict):
    """Settings of handoffs: what they leave behind, and what is prepared for them.

    With `save_to_disk`, handoff documents and what an automatic handoff told its successor are also saved
    as `handoff-<time>.md` beside the packets. With `draft_near_limit`, an agent that is near a limit is asked
    for a handoff document at the end of its turn, which costs a part of what it has left. A document is used
    until the user has given its agent more than `fresh_prompts` further prompts. A usage window is near its
    limit from `near_limit_percent` of use on (0: where its adapter says), and with `near_limit_by_rate` also
    when, as fast as it is used now, it would be full before the turn ends. With `digest` "successor",
    the successor's own program writes a handoff document from relay's record before its first turn, without
    tools and within `digest_limit_s`; if it cannot, the handoff goes on without it.
    """

    save_to_disk: bool = False
    draft_near_limit: bool = False
    near_limit_percent: float = Field(default=0, ge=0, le=100)
    near_limit_by_rate: bool = True
    fresh_prompts: int = Field(default=5, ge=0, le=1000)
    digest: Literal["off", "successor"] = "off"
    digest_limit_s: float = Field(default=120, gt=0, le=120)

    def build_near_wishes(self) -> NearLimitWishes:
        """Return when a usage window is near its limit, for the detector."""
        return NearLimitWishes(self.near_limit_percent, self.near_limit_by_rate)


class ContextConfig(Strict):
    """Actions when an agent's context fills up: none unless `mode` says so.

    The marks are percent of the room it has until it compacts by itself: at `advise` the user is told, at
    `draft` the agent writes a handoff document (mode handoff), at `act` it is handed over, told to compact,
    or the user is asked to, at the end of a turn. `ceiling` puts the mark `act` at a number of tokens, where
    that is lower, and the others below it in proportion. Nothing is done again about the same conversation
    before it fell below `rearm`, nor about any within `cooldown_s`. `to` is who takes over: "same" is a new
    conversation of the same agent, "next" the next one of the order, anything else an agent's name.
    """

    mode: Literal["off", "handoff", "compact", "ask"] = "off"
    advise: float = Field(default=NO_WISHES.advise, gt=0, le=100)
    draft: float = Field(default=NO_WISHES.draft, gt=0, le=100)
    act: float = Field(default=NO_WISHES.act, gt=0, le=100)
    rearm: float = Field(default=NO_WISHES.rearm, gt=0, le=100)
    ceiling: int = Field(default=0, ge=0)
    cooldown_s: float = Field(default=NO_WISHES.cooldown.total_seconds(), ge=0, le=86400)
    to: str = "same"

    @model_validator(mode="after")
    def _marks_rise(self) -> "ContextConfig":
        if not self.rearm < self.advise <= self.draft <= self.act:
            raise ValueError("the marks must rise: rearm, advise, draft, act")
        return self

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


class BudgetConfig(Strict):
    """So much may be used in a session, or on a day by everything on this machine: `tokens` or `dollars`.

    `agent` narrows it to one. The user is told at `warn` percent. What happens when it is used up, `then`
    says: warn tells once more, handoff has another agent take over (for which the agent has to be named),
    stop ends the session.
    """

    per: Literal["session", "day"]
    agent: str = ""
    # Strict: `true` would be one token. A hundredth is the least that can be told.
    tokens: int | None = Field(default=None, gt=0, strict=True)
    dollars: Decimal | None = Field(default=None, ge=Decimal("0.01"), le=1_000_000, allow_inf_nan=False)
    warn: float = Field(default=80, gt=0, le=100)
    then: Literal["warn", "handoff", "stop"] = "warn"

    @model_validator(mode="after")
    def _says_how_much_of_what(self) -> "BudgetConfig":
        if (self.tokens is None) == (self.dollars is None):
            raise ValueError("a budget has either tokens or dollars")
        if self.then == "handoff" and not self.agent:
            raise ValueError('then = "handoff" needs the agent that is to give way')
        return self

    def build_budget(self) -> Budget:
        """Return the same for the state machine."""
        return Budget(self.per, self.agent, self.tokens or 0, self.dollars, self.warn, self.then)


def _check_order(order: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted({name for name in order if order.count(name) > 1})
    if twice:
        raise ValueError(f"{', '.join(twice)} is there twice")
    return order


def _check_by(parse: Callable[[str], object]) -> Callable[[str], str]:
    """Return a validator that leaves a text as it is if `parse` takes it."""

    def check(text: str) -> str:
        parse(text)
        return text

    return check


_Order = Annotated[tuple[str, ...], AfterValidator(_check_order)]
_Notify = Annotated[
    tuple[str, ...], BeforeValidator(list_notify_methods), AfterValidator(check_notify_methods)
]


class UserConfig(Strict):
    """The user's `config.toml`.

    `order` is the roster, preferred first; empty means every agent we have an adapter for, except the
    scripted ones. `patience_s` is how long an agent may plan to wait before that counts as a limit.
    `return` is what happens when a preferred agent's window resets; `notify` how a person who looks
    elsewhere is told of what happens; `resume_at_reset` whether work goes on by itself when everybody rested,
    `quiet_hours` when nothing does; `agent_tools` whether agents are given relay's tools; `model_remedy` what
    a limit of one model leads to: the next agent, or the same one with its `fallback_model`, where it has
    one. With `proxy`, agents' requests to their providers
    pass through relay's proxy on this machine.
    """

    order: _Order = ()
    patience_s: float = Field(default=300, gt=0, le=86400)
    return_: Literal["offer", "auto", "off"] = Field(default="offer", alias="return")
    notify: _Notify = (NOTIFY_AUTO,)
    resume_at_reset: Literal["ask"] | bool = "ask"
    quiet_hours: Annotated[str, AfterValidator(_check_by(parse_quiet_hours))] = ""
    proxy: bool = False
    relay_key: Annotated[str, AfterValidator(_check_by(parse_relay_key))] = DEFAULT_RELAY_KEY
    model_remedy: Literal["handoff", "model"] = "handoff"
    agent_tools: bool = True
    agents: dict[str, AgentConfig] = Field(default_factory=dict)
    handoff: HandoffConfig = HandoffConfig()
    context: ContextConfig = ContextConfig()
    redaction: RedactionConfig = RedactionConfig()
    export: ExportConfig = ExportConfig()
    budgets: tuple[BudgetConfig, ...] = ()

    @field_validator("budgets")
    @classmethod
    def _budgets_differ(cls, budgets: tuple[BudgetConfig, ...]) -> tuple[BudgetConfig, ...]:
        names = [budget.build_budget().name for budget in budgets]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice[0]} is there twice")
        return budgets

    @field_validator("resume_at_reset", mode="before")
    @classmethod
    def _resume_is_said_plainly(cls, wish: object) -> object:
        if wish != "ask" and not isinstance(wish, bool):
            raise ValueError('it must be "ask", true or false')
        return wish

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


class ProjectConfig(Strict):
    """A project's `.agent-relay/config.toml`: it comes with a clone, so it may only order and leave out."""

    order: _Order = ()


def build_roster(known: tuple[str, ...], user: UserConfig, project: ProjectConfig) -> tuple[str, ...]:
    """Return the agents allowed here, preferred first.

    `known` is the roster if the user sets none. A project reorders and leaves out; an agent the user did not
    allow stays out, and a project's order that would leave no agent is ignored.
    """
    allowed = user.order or known
    narrowed = tuple(name for name in project.order if name in allowed)
    return narrowed or allowed
