"""Remove secrets from facts before a packet is built of them, from every string of a packet, and from events.

Facts come first because an excerpt of half a key looks like no key. In a packet the strings of fields
unknown to this version are included.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec.structs import astuple

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.events import session as events
from agent_relay.domain.events import work
from agent_relay.domain.facts import CommandRun, Facts, FileChange, Message, TodoItem, ToolError
from agent_relay.domain.protocol.handoff_report import LONGEST_OUTPUT
from agent_relay.domain.text.plain import clean_text
from agent_relay.domain.values import replace
from agent_relay.redact.known_values import EMPTY_ALLOW_LIST, AllowList
from agent_relay.redact.rules import PLACEHOLDER
from agent_relay.session.turns.chat import LONGEST_MESSAGE, shorten_message

if TYPE_CHECKING:
    from agent_relay.domain.documents.packet import ResumePacket
    from agent_relay.redact.text import Redacted

_SHORTEST_CUT = 300
"""Length in characters above which what agents ran and read is excerpted; shorter texts are kept whole."""


def redact_facts(
    facts: Facts, *, known: frozenset[str] = frozenset(), allow: AllowList = EMPTY_ALLOW_LIST
) -> Facts:
    """Return the facts with secrets removed from every text that a packet may quote a part of.

    Texts that are quoted whole are cleaned with the packet, unless the facts hold a private key: then all
    are searched for parts of it. Takes about 0.3 s for a megabyte of long texts.
    """
    from agent_relay.redact.text import redact_text

    keys = collect_fact_keys([facts], allow)

    def clean(text: str) -> str:
        return redact_text(text, known=known, allow=allow, keys=keys).text

    def clean_long(text: str) -> str:
        return clean(text) if keys or len(text) > _SHORTEST_CUT else text

    def clean_said(said: Message) -> Message:
        return replace(said, text=clean(said.text))

    def clean_run(run: CommandRun) -> CommandRun:
        return replace(run, command=clean_long(run.command), output=clean_long(run.output))

    def clean_error(error: ToolError) -> ToolError:
        return replace(error, text=clean_long(error.text))

    def clean_step(step: TodoItem) -> TodoItem:
        return replace(step, text=clean(step.text))

    waiting = facts.unprocessed_prompt
    return replace(
        facts,
        files=tuple(_clean_change(change, clean) for change in facts.files),
        conversation=tuple(map(clean_said, facts.conversation)),
        commands=tuple(map(clean_run, facts.commands)),
        errors=tuple(map(clean_error, facts.errors)),
        plan=tuple(map(clean_step, facts.plan)),
        unprocessed_prompt=clean_said(waiting) if waiting else None,
        limit_text=clean(facts.limit_text),
        summary=clean(facts.summary),
        background=tuple(map(clean, facts.background)),
    )


def collect_fact_keys(records: Iterable[Facts], allow: AllowList = EMPTY_ALLOW_LIST) -> frozenset[str]:
    """Return the pieces of all private keys in these facts (`redact.text.collect_keys`)."""
    from agent_relay.redact.text import collect_keys

    return collect_keys((text for facts in records for text in _list_texts(facts)), allow)


def _list_texts(facts: Facts) -> Iterator[str]:
    """Yield the texts in which a whole private key may stand."""
    for run in facts.commands:
        yield from (run.command, run.output)
    for change in facts.files:
        yield from ("\n".join(change.removed_lines), "\n".join(change.added_lines))
    yield from (said.text for said in facts.conversation)
    yield from (error.text for error in facts.errors)
    yield facts.unprocessed_prompt.text if facts.unprocessed_prompt else ""
    yield from (facts.summary, *facts.background, *facts.last_lines)


def _clean_change(change: FileChange, clean: Callable[[str], str]) -> FileChange:
    """Return the change with its lines cleaned together: a key spans lines that look harmless one by one."""

    def clean_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
        before = "\n".join(lines)
        after = clean(before)
        return lines if after == before else tuple(after.split("\n"))

    if not change.removed_lines and not change.added_lines:
        return change
    removed, added = clean_lines(change.removed_lines), clean_lines(change.added_lines)
    return replace(change, removed_lines=removed, added_lines=added)


_DEEPEST = 100
_REMOVED = re.compile(re.escape(PLACEHOLDER) + r"([a-z-]+)\]")
# Our own words and names: nothing in them comes from outside, and a reader relies on them.
_OURS = frozenset(
    {"schema", "version", "packet_id", "session_id", "sequence", "created_at", "redactions", "spared"}
)


class _Cleaner(msgspec.Struct, frozen=True):
    """The values and keys to look for, and counts of what was removed and spared so far."""

    known: frozenset[str]
    allow: AllowList
    keys: frozenset[str]
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    spared: Counter[str] = msgspec.field(default_factory=Counter)

    def redact(self, text: str) -> "Redacted":
        """Return `text` without secrets, not counted yet."""
        from agent_relay.redact.text import redact_text

        return redact_text(text, known=self.known, allow=self.allow, keys=self.keys)


def redact_packet(
    packet: "ResumePacket",
    *,
    known: frozenset[str] = frozenset(),
    allow: AllowList = EMPTY_ALLOW_LIST,
    keys: frozenset[str] = frozenset(),
) -> "ResumePacket":
    """Return the packet with every string cleaned of control characters and secrets.

    `keys` are the pieces of the private keys in the facts it was built of (`collect_fact_keys`).
    `redactions` counts what it lost, including what its facts had lost before and what an earlier packet
    said. `spared` counts what is still in it because of the user's allow-list. Raises UntrustedDataError if
    unknown fields are nested absurdly deep.
    """
    from agent_relay.domain.documents.packet_json import parse_packet, render_document

    cleaner = _Cleaner(known, allow, keys)
    document = render_document(packet)
    for key, value in document.items():
        if key not in _OURS:
            document[key] = _redact(value, cleaner, depth=0)
    counts = cleaner.counts | Counter({entry.kind: entry.count for entry in packet.redactions})
    more = {entry.kind: entry.model_extra or {} for entry in packet.redactions}
    document["redactions"] = [
        {"kind": kind, "count": counts[kind], **more.get(kind, {})} for kind in sorted(counts)
    ]
    document["spared"] = [{"kind": kind, "count": cleaner.spared[kind]} for kind in sorted(cleaner.spared)]
    return parse_packet(document)


def _redact(value: object, cleaner: _Cleaner, *, depth: int) -> object:
    if depth > _DEEPEST:
        raise UntrustedDataError("the packet is nested too deeply to be searched for secrets")
    if isinstance(value, str):
        redacted = cleaner.redact(clean_text(value))
        cleaner.counts.update(_REMOVED.findall(redacted.text))
        cleaner.spared.update(redacted.spared)
        return redacted.text
    if isinstance(value, list):
        return [_redact(one, cleaner, depth=depth + 1) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return {
            cast("str", _redact(key, cleaner, depth=depth + 1)): _redact_entry(key, one, cleaner, depth)
            for key, one in entries.items()
        }
    return value


def _redact_entry(key: str, value: object, cleaner: _Cleaner, depth: int) -> object:
    """Redact a value together with its name: `{"password": "hunter2"}` is secret only by its key."""
    before = cleaner.spared.total()
    plain = _redact(value, cleaner, depth=depth + 1)
    if isinstance(value, str) and plain == clean_text(value):
        named = cleaner.redact(f'"{key}": "{plain}"')
        if cleaner.spared.total() == before:
            cleaner.spared.update(named.spared)
        if named.counts and named.text.startswith(f'"{key}": "[redacted'):
            cleaner.counts.update(named.counts)
            return named.text.removeprefix(f'"{key}": "').removesuffix('"')
    return plain


MOST_PROMPT = 8000
"""Most characters of a prompt that are journalled."""
_MARGIN = 4000
"""The characters beyond a cut that are searched for secrets: no rule recognises half of one."""


def count_redacted(body: events.Body) -> int:
    """Return how many characters `redact_body` searches at most, including what it may skip."""
    if isinstance(body, events.PromptSeen):
        return min(len(body.text), MOST_PROMPT + _MARGIN)
    values = astuple(body)
    texts = [text for value in values for text in (value if isinstance(value, tuple) else (value,))]
    return sum(len(text) for text in texts if isinstance(text, str))


_WORDS: dict[type[events.Body], tuple[str, ...]] = {
    events.SessionCreated: ("task",),
    events.SignalSeen: ("text", "model"),
    events.SessionRested: ("why", "skipped"),
    work.ChatBegun: ("task",),
    work.HandoffBegun: (
        "why", "focus", "skipped", "deliverables", "criteria", "checks", "proposed_checks", "constraints",
        "questions",
    ),
    work.PacketPublished: ("lacks",),
    work.CriterionChecked: ("criterion", "how", "output"),
    work.BlockerNamed: ("text", "requires"),
    work.HandoffClosed: (
        "note", "skipped", "deliverables", "completed", "incomplete", "questions", "suggested_next",
    ),
    work.HandoffRequested: (
        "title", "text", "next_step", "files", "deliverables", "completed", "incomplete", "questions",
        "suggested_next",
    ),
    work.AgentNoted: ("text", "next_step"),
    work.HandoffAccepted: ("note",),
    work.BudgetNoted: ("text",),
    work.TurnBegun: ("prompt",),
    work.TurnEnded: ("why", "refused"),
    **dict.fromkeys(
        (
            work.HandoffCancelled, work.HandoffWithdrawn, work.HandoffFailed, work.DigestEnded,
            events.SessionEnded, events.SessionStopping, work.SessionWaits, events.SessionWoke,
        ),
        ("why",),
    ),
}  # fmt: skip
"""The fields of events that hold anybody's words: a text, or several."""


def redact_body(body: events.Body, *, known: frozenset[str]) -> events.Body:
    """Return `body` without secrets; `known` are values that are secret wherever they occur."""
    if isinstance(body, events.PromptSeen):
        return _clean_prompt(body, known)
    clean = {name: _clean(getattr(body, name), known) for name in _WORDS.get(type(body), ())}
    body = msgspec.structs.replace(body, **clean)
    match body:
        case work.CriterionChecked():
            # The margin is searched, too: what was cut before may begin with half a secret.
            return replace(body, output=body.output[-LONGEST_OUTPUT:])
        case work.TurnEnded():
            return replace(body, said=_clean_answer(body.said, known))
        case _:
            return body


def _clean(words: object, known: frozenset[str]) -> object:
    """Return a text, or each of several, without secrets."""
    if isinstance(words, tuple):
        return tuple(_clean(one, known) for one in words)
    return _clean_text(words, known) if isinstance(words, str) else words


def _clean_text(text: str, known: frozenset[str]) -> str:
    if not text:
        return text
    # Most events hold no words of anybody, and the rules take long to load.
    from agent_relay.redact.text import redact_words

    return redact_words(text, known=known)


def _clean_prompt(body: events.PromptSeen, known: frozenset[str]) -> events.PromptSeen:
    """Return the event with a long prompt cut to what a journal keeps, after secrets are removed."""
    searched = body.text[: MOST_PROMPT + _MARGIN]
    beyond = len(body.text) - len(searched)
    text = _clean_text(searched, known)
    # What was cut before it was searched may end with half a secret.
    kept = (text[:-_MARGIN] if beyond else text)[:MOST_PROMPT]
    return replace(body, text=kept, left_out=body.left_out + beyond + len(text) - len(kept))


def _clean_answer(said: str, known: frozenset[str]) -> str:
    """Return the end of an agent's words, as a chat keeps them, cut after secrets are removed."""
    beyond = len(said) - LONGEST_MESSAGE - _MARGIN
    if beyond <= 0:
        return shorten_message(_clean_text(said, known))
    # What was cut before it was searched may begin with half a secret.
    return shorten_message(_clean_text(said[beyond:], known)[_MARGIN:], before=beyond + _MARGIN)
