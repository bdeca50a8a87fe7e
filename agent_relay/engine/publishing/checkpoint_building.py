"""Build a checkpoint: what a conversation gained since the one before, redacted; runs in a limited process.

It writes nothing. Only what is new is read, so a checkpoint of a long conversation takes no longer.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import CheckpointMade
from agent_relay.domain.facts import CheckpointFacts, Facts, NativeSession, RecordCursor, TodoItem
from agent_relay.domain.names import CHECKPOINTS
from agent_relay.domain.session import AgentNote, Leg, Session
from agent_relay.domain.text.plain import clean_text
from agent_relay.domain.values import Confidential, Tree, render_path, replace
from agent_relay.engine.publishing.native_records import find_own, look_for
from agent_relay.packet.checkpoint_facts import bound_facts, cut_middle, number_facts
from agent_relay.packet.extract.outcomes import build_runs
from agent_relay.packet.extract.requests import empty_packets, strip_relay
from agent_relay.redact.known_values import AllowList
from agent_relay.redact.packet import collect_fact_keys
from agent_relay.redact.text import redact_text
from agent_relay.session.views.messages import session_folder
from agent_relay.sources.transcript_reader import look_at_record, read_growth
from agent_relay.store.checkpoints import find_newest, find_room, read_checkpoints, render_checkpoint
from agent_relay.system.config_file import gather_secrets
from agent_relay.system.git.tree_state import read_uncounted_tree

_PROMPT_LENGTH = 600
_ANSWER_LENGTH = 1200
_NOTE_LENGTH, _STEP_LENGTH = 600, 200
_FILES, _CHECKS, _NAME_LENGTH = 40, 8, 200


class CheckpointProgress(msgspec.Struct, frozen=True):
    """The progress of a conversation's checkpoints.

    `asked` is the prompt the last one was made after, `mark` the state of the record before it was read.
    """

    native_id: str
    cursor: RecordCursor
    turns: int = 0
    plan: tuple[TodoItem, ...] = ()
    asked: str = ""
    mark: tuple[int, ...] = ()


class CheckpointOrder(Confidential, frozen=True):
    """Everything a checkpoint is made of that is not on disk; `before` is `None` if nobody remembers it."""

    session: Session
    leg: Leg
    loaded: LoadedAdapter
    environ: Mapping[str, str]
    at: datetime
    allow: AllowList
    before: CheckpointProgress | None

    @property
    def asked(self) -> str:
        """The last prompt of the leg, according to the journal."""
        turn = self.session.turn if self.leg.headless else None
        return self.leg.asked.text if self.leg.asked is not None else turn.prompt if turn is not None else ""

    @property
    def note(self) -> AgentNote | None:
        """The agent's newest note on its work that no checkpoint has yet; `None` for none."""
        note = self.session.note
        return note if note is not None and note.leg == self.leg.id and not note.is_kept else None

    def is_due(self) -> bool:
        """Tell whether anything may have changed since the checkpoint before; asks the disk."""
        before = self.before
        if before is None or not before.mark or before.asked != self.asked or self.note is not None:
            return True
        return look_at_record(before.cursor.path) != before.mark


class BuiltCheckpoint(msgspec.Struct, frozen=True):
    """The event, the line to keep (empty for none), or the whole file with it, and what to remember."""

    event: CheckpointMade
    line: bytes
    contents: bytes | None
    progress: CheckpointProgress


def build_checkpoint(order: CheckpointOrder) -> BuiltCheckpoint | None:
    """Return the checkpoint of the leg; `None` if nothing has changed since the one before.

    Raises RelayError if it cannot be built.
    """
    leg, lacks = order.leg, ""
    native: NativeSession | None = None
    try:
        native = _find_remembered(order) or look_for(order.loaded, order.session, leg, order.environ)
    except RelayError as error:
        lacks = error.sentence
    mark = look_at_record(native.path) if native is not None else ()
    native_id = leg.native_id or (native.native_id if native is not None else "")
    before = order.before or _remember(order, native_id)
    kept: CheckpointFacts | None = None
    try:
        kept = _read_new(order, native, native_id, before) if native is not None else None
    except RelayError as error:
        lacks = error.sentence
    is_known = order.before is not None and order.asked == before.asked
    if kept is None and order.note is None and (is_known or not order.asked):
        return None
    built = _build(order, kept, before, native_id, lacks)
    return replace(built, progress=replace(built.progress, mark=mark))


def _find_remembered(order: CheckpointOrder) -> NativeSession | None:
    """Return the record that the leg itself named, or that its last checkpoint was made of."""
    leg, before = order.leg, order.before
    if before is not None and before.cursor.path and before.native_id == leg.native_id != "":
        leg = replace(leg, transcript=leg.transcript or before.cursor.path)
    return find_own(leg)


def _remember(order: CheckpointOrder, native_id: str) -> CheckpointProgress:
    """Return the progress that the file of checkpoints shows; a new one if it shows none."""
    leg, folder = order.leg, session_folder(order.session)
    head = find_newest(folder, leg=leg.id, agent=leg.agent, native_id=native_id)
    if head is None:
        return CheckpointProgress(native_id, RecordCursor(""))
    kept = read_checkpoints(folder, leg=leg.id, agent=leg.agent, native_id=native_id)
    plan = kept[-1].facts.plan if kept else ()
    return CheckpointProgress(native_id, head.cursor, head.turns, plan)


def _read_new(
    order: CheckpointOrder, native: NativeSession, native_id: str, before: CheckpointProgress
) -> CheckpointFacts | None:
    spec = order.loaded.adapter.transcript
    if spec is None or not _is_text(native.path):
        return None
    cursor = before.cursor if before.native_id == native_id else None
    grown = read_growth(
        spec.reader, native.path, cursor, native_id=native_id, agent=order.leg.agent, plan=before.plan
    )
    if grown is None:
        return None
    # What comes after a record that was lost is counted on from it.
    turns = before.turns if cursor is not None else 0
    lines = 0 if grown.is_from_start or cursor is None else cursor.lines
    facts = number_facts(grown.facts, turns=turns, lines=lines)
    last = max((said.turn for said in facts.conversation if said.role == "user"), default=turns)
    facts = replace(facts, plan=facts.plan or before.plan)
    return CheckpointFacts(order.leg.id, order.leg.agent, native_id, order.at, grown.cursor, last, facts)


def _is_text(path: str) -> bool:
    """Tell whether a path can be kept in a document."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _build(
    order: CheckpointOrder,
    kept: CheckpointFacts | None,
    before: CheckpointProgress,
    native_id: str,
    lacks: str,
) -> BuiltCheckpoint:
    known = gather_secrets(order.session.root, order.environ, cwd=order.session.cwd)
    keys = collect_fact_keys([kept.facts] if kept is not None else (), order.allow)

    def clean(text: str) -> str:
        found = redact_text(clean_text(text), known=known, allow=order.allow, keys=keys).text
        return found if found.isascii() else found.encode("utf-8", "backslashreplace").decode()

    tree = read_uncounted_tree(order.session.cwd)
    if kept is None:
        asked = cut_middle(clean(order.asked), _PROMPT_LENGTH)
        event = replace(_describe_known(order, tree, clean), prompt=asked, lacks=clean(lacks))
        return BuiltCheckpoint(event, b"", None, replace(before, asked=order.asked))
    emptied = replace(
        kept.facts,
        conversation=tuple(
            replace(said, text=empty_packets(said.text)) if said.role == "user" else said
            for said in kept.facts.conversation
        ),
    )
    kept = replace(kept, facts=bound_facts(emptied, clean))
    line = render_checkpoint(kept)
    prompt, answer = _quote(order, kept.facts, clean)
    event = replace(
        _describe_known(order, tree, clean),
        prompt=prompt,
        answer=answer,
        checks=_list_checks(kept.facts, order.leg.agent),
        turns=kept.turns,
        kept=CHECKPOINTS,
    )
    progress = CheckpointProgress(native_id, kept.cursor, kept.turns, kept.facts.plan, order.asked)
    return BuiltCheckpoint(event, line, find_room(session_folder(order.session), line), progress)


def _describe_known(order: CheckpointOrder, tree: Tree, clean: Callable[[str], str]) -> CheckpointMade:
    """Return the event with what is known without the record: the tree, and the agent's own note."""
    note = order.note
    names = [f"{file.status} {render_path(file.path)}"[:_NAME_LENGTH] for file in tree.files[:_FILES]]
    return CheckpointMade(
        order.leg.id,
        head=tree.head or "",
        branch=clean(render_path(tree.branch or "")),
        fingerprint=tree.fingerprint,
        files=tuple(clean("\n".join(names)).split("\n")) if names else (),
        changed=len(tree.files) + tree.omitted,
        note=cut_middle(clean(note.text), _NOTE_LENGTH) if note is not None else "",
        next_step=cut_middle(clean(note.next_step), _STEP_LENGTH) if note is not None else "",
        noted_at=note.at.isoformat() if note is not None else "",
    )


def _quote(order: CheckpointOrder, facts: Facts, clean: Callable[[str], str]) -> tuple[str, str]:
    """Quote the last prompt, without what relay typed, and the last answer, both shortened."""
    own, _ = strip_relay(facts, (order.loaded.adapter.deliver.opening,))
    asked = next((said.text for said in reversed(own.conversation) if said.role == "user"), "")
    answer = next((said.text for said in reversed(own.conversation) if said.role == "assistant"), "")
    prompt = asked or clean(order.asked)
    return cut_middle(prompt, _PROMPT_LENGTH), cut_middle(answer, _ANSWER_LENGTH)


def _list_checks(facts: Facts, agent: str) -> tuple[str, ...]:
    """List the checks that ran, each with its result."""
    runs = build_runs(facts, agent=agent)[-_CHECKS:]
    return tuple(f"{run.kind}: {run.command[:_NAME_LENGTH]} ({run.verdict or 'unknown'})" for run in runs)
