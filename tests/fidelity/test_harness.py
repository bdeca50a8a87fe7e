"""The scorer of packets can fail them, and the sessions it uses match their scripts."""

import os
from collections.abc import Iterable
from dataclasses import replace

import pytest

from agent_relay.domain.facts import Facts
from agent_relay.sources.transcript_reader import read_whole_facts
from tests.fidelity.packets import Workshop
from tests.fidelity.scoring import find_misleading, score_text
from tests.fidelity.script import CASES, Case, list_cases, load_case, parse_case
from tests.fidelity.transcripts import LaidOut, lay_out
from tests.fidelity.truths import Trap, Truth
from tests.support.corpus_story import Event

_READERS = {
    "claude": "claude-jsonl",
    "codex": "codex-rollout",
    "gemini": "gemini-jsonl",
    "opencode": "opencode-db",
}
_FORMATS = (*((agent, "") for agent in _READERS), ("codex", "wire"), ("claude", "tasks"))


def _lay_out_as(case: Case, agent: str, form: str, folder: str) -> LaidOut:
    """The case as another agent would have had it."""
    meta = {**case.meta, "agent": agent, "format": form, "todos": form}
    events = tuple(event for event in case.events if event.kind != "limit")
    limit = parse_case("limit", f"@META agent={agent}\n@LIMIT", Truth(())).events
    return lay_out(replace(case, meta=meta, events=(*events, *limit)), folder)


def _list_changes(events: Iterable[Event], root: str) -> list[tuple[str, str, int, int]]:
    changes = []
    for event in events:
        if event.kind == "edit":
            changes.append((f"{root}/{event.text}", "modified", *event.count_changed()))
        elif event.kind == "create":
            lines = event.get("content").count("\n") + bool(event.get("content"))
            changes.append((f"{root}/{event.text}", "created", lines, 0))
    return changes


def _list_since_cleared(events: Iterable[Event]) -> list[Event]:
    found: list[Event] = []
    for event in events:
        found = [] if event.kind == "clear" else [*found, event]
    return found


def _list_told(laid: LaidOut) -> dict[str, object]:
    """What its script tells of the session, without what was taken back or cleared."""
    shown, root = _list_since_cleared(laid.shown), laid.repository
    roles = {"prompt": "user", "say": "assistant"}
    plans = [event.steps for event in shown if event.kind == "plan"]
    return {
        "said": [(roles[one.kind], one.text.strip()) for one in shown if one.kind in roles],
        "changed": _list_changes(shown, root),
        "plan": list(plans[-1]) if plans else [],
        "limit": (shown[-1].text, root),
        "ran": [(one.text, one.more["exit"]) for one in shown if one.kind == "run"],
    }


def _list_read(facts: Facts, root: str) -> dict[str, object]:
    """The same of its transcript; Codex reads files with commands."""
    files = [one for one in facts.files if one.action != "read"]
    ran = [one for one in facts.commands if not one.command.startswith(f"cat {root}/")]
    return {
        "said": [(one.role, one.text) for one in facts.conversation],
        "changed": [(one.path, one.action, one.added, one.removed) for one in files],
        "plan": [(one.text, one.status) for one in facts.plan],
        "limit": (facts.limit_text, facts.cwd),
        "ran": [(one.command, one.exit_code) for one in ran],
    }


@pytest.mark.size("every")
def test_what_a_script_tells_is_read_again(workshop: Workshop) -> None:
    """A question about what the transcript does not hold would measure the harness.

    Every case is in its own agent's format, and the first in all formats.
    """
    first, *others = list_cases()
    forms = [
        _lay_out_as(load_case(first), agent, form, f"{workshop.folder}/{agent}{form}")
        for agent, form in _FORMATS
    ]
    for laid in (*forms, *map(workshop.lay_out, others)):
        facts = read_whole_facts(_READERS[laid.case.agent], laid.transcript, agent=laid.case.agent)
        assert _list_read(facts, laid.repository) == _list_told(laid), laid.transcript


def test_an_empty_packet_answers_nothing() -> None:
    """A scorer that accepts nothing would accept anything."""
    scores = {name: score_text("", load_case(name).truth) for name in list_cases()}
    assert [name for name, score in scores.items() if set(score.grades) != {0}] == []
    assert {(score.full, score.part, score.misleading, score.leaked) for score in scores.values()} == {
        (0, 0, (), ())
    }


@pytest.mark.size("every")
def test_the_whole_session_answers_every_question(workshop: Workshop) -> None:
    """What cannot be answered from the session cannot be asked of a packet; and it holds every secret."""
    for name in list_cases():
        laid = workshop.lay_out(name)
        score = score_text(laid.digest, laid.case.truth)
        graded = zip(laid.case.truth.questions, score.grades, strict=True)
        assert [one.question for one, given in graded if given < 1] == [], name
        assert set(score.leaked) == set(laid.case.truth.secrets), name


def test_a_document_written_by_hand_answers_everything() -> None:
    """Selection is the problem, not room."""
    with open(os.path.join(CASES, "booking-locks.ideal.md"), encoding="utf-8") as file:
        score = score_text(file.read(), load_case("booking-locks").truth)
    assert (score.full, score.misleading, score.leaked, score.talk) == (15, (), (), 0)


def test_a_secret_is_found_in_both_forms_and_under_its_escapes() -> None:
    """A key in a link leaks like one in plain words."""
    truth = Truth((), (), ("p%4055word", "a<b>c"))
    assert score_text("it is p%4055word", truth).leaked == ("p%4055word",)
    assert score_text("it is p@55word", truth).leaked == ("p%4055word",)
    assert score_text("", truth, document="a&lt;b&gt;c").leaked == ("a<b>c",)
    assert score_text("p@55 word, ab c", truth).leaked == ()


def test_a_trap_misleads_unless_what_disarms_it_is_close() -> None:
    """An option that was dropped may be told, as dropped."""
    trap = Trap("dropped option", "use the pool", "made it worse")
    assert find_misleading("We use the pool.", [trap])[0][0] == "dropped option"
    assert find_misleading("We use the pool. No: it made it worse.", [trap]) == []
    assert find_misleading(f"use the pool{'.' * 400}made it worse", [trap]) != []
    assert find_misleading("use the pool", [replace(trap, unless="")]) != []
