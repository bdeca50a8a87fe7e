"""The scorer of packets can fail them, and the sessions it uses match their scripts."""

import itertools
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from agent_relay.domain.facts import Facts
from agent_relay.sources.transcript_reader import read_whole_facts
from tests.fidelity.__main__ import main
from tests.fidelity.scoring import NEAR, find_misleading, grade, is_near, list_settled, score_text
from tests.fidelity.script import CASES, Case, list_cases, load_case, parse_case
from tests.fidelity.talk import read_bank, read_sentences, weave
from tests.fidelity.transcripts import LaidOut, lay_out
from tests.fidelity.truths import Question, Trap, Truth, parse_truth
from tests.support.corpus_story import Event
from tests.support.handoffs import git

_READERS = {
    "claude": "claude-jsonl",
    "codex": "codex-rollout",
    "gemini": "gemini-jsonl",
    "opencode": "opencode-db",
}
_FORMATS = (*((agent, "") for agent in _READERS), ("codex", "wire"), ("claude", "tasks"))
_SESSION = """\
@META agent={agent} noise=0
@U build it, never touch vendor/
@a First the parser.
@W src/parse.py
def parse():
    ...
@E src/main.py
-import old
-import older
+import parse
@$ [2] make test
FAILED tests/test_parse.py::test_empty
@A It fails on the empty case. Shall I return None?
@U yes
@E src/main.py
+print(parse())
@$ make test
4 passed
@T
[x] parser
[>] main
[ ] docs
@S Look for callers
There are two, both in the worker.
@A Done.
@U try it with a regex
@E src/parse.py
-    ...
+    re.match()
@A Slower.
@REWIND
@U now the docs, and
keep them short
@R docs/index.md
@a Reading the page.
@LIMIT
"""


def _parse(agent: str, text: str = _SESSION) -> Case:
    return parse_case("sample", text.replace("{agent}", agent), Truth(()))


def _write(case: Case, agent: str, form: str, folder: Path) -> LaidOut:
    """The case as another agent would have had it."""
    meta = {**case.meta, "agent": agent, "format": form, "todos": form}
    events = tuple(event for event in case.events if event.kind != "limit")
    limit = next(event for event in _parse(agent).events if event.kind == "limit")
    return lay_out(replace(case, meta=meta, events=(*events, limit)), str(folder))


def _read(laid: LaidOut) -> Facts:
    agent = laid.case.agent
    return read_whole_facts(_READERS[agent], laid.transcript, agent=agent)


def _list_changes(events: Iterable[Event], root: str) -> list[tuple[str, str, int, int]]:
    changes = []
    for event in events:
        if event.kind == "edit":
            changes.append((f"{root}/{event.text}", "modified", *event.count_changed()))
        elif event.kind == "create":
            lines = event.get("content").count("\n") + bool(event.get("content"))
            changes.append((f"{root}/{event.text}", "created", lines, 0))
    return changes


def _list_rounds() -> list[tuple[str, str, str]]:
    """Every case in its own agent's format, and the first in all formats."""
    first, *others = map(load_case, list_cases())
    own = [(case.name, case.agent, case.meta.get("format", case.meta.get("todos", ""))) for case in others]
    return [*((first.name, agent, form) for agent, form in _FORMATS), *own]


@pytest.mark.size("test")
@pytest.mark.parametrize(("name", "agent", "form"), _list_rounds())
def test_what_a_script_tells_is_read_again(name: str, agent: str, form: str, tmp_path: Path) -> None:
    """A question about what the transcript does not hold would measure the harness."""
    laid = _write(load_case(name), agent, form, tmp_path)
    facts = _read(laid)
    shown = _list_since_cleared(laid.shown)
    roles = {"prompt": "user", "say": "assistant"}
    said = [(one.role, one.text) for one in facts.conversation]
    assert said == [(roles[one.kind], one.text.strip()) for one in shown if one.kind in roles]
    changed = [(one.path, one.action, one.added, one.removed) for one in facts.files if one.action != "read"]
    assert changed == _list_changes(shown, laid.repository)
    plans = [event.steps for event in shown if event.kind == "plan"]
    assert [(one.text, one.status) for one in facts.plan] == (list(plans[-1]) if plans else [])
    assert facts.limit_text == shown[-1].text
    assert facts.cwd == laid.repository
    _check_runs(facts, shown, laid.repository)


def _check_runs(facts: Facts, shown: list[Event], root: str) -> None:
    """Every command with its status, and the output that is kept; Codex reads files with commands."""
    ran = [one for one in facts.commands if not one.command.startswith(f"cat {root}/")]
    told = [one for one in shown if one.kind == "run"]
    assert [(one.command, one.exit_code) for one in ran] == [(one.text, one.more["exit"]) for one in told]
    for one, event in zip(ran, told, strict=True):
        if one.output and 0 < len(event.get("output")) < 8000:
            assert one.output.strip("\n") == event.get("output")


def _list_since_cleared(events: Iterable[Event]) -> list[Event]:
    found: list[Event] = []
    for event in events:
        found = [] if event.kind == "clear" else [*found, event]
    return found


@pytest.mark.size("test")
@pytest.mark.parametrize(("agent", "form"), _FORMATS)
def test_what_was_taken_back_is_not_read(agent: str, form: str, tmp_path: Path) -> None:
    """A branch the user left would come back as what they want."""
    facts = _read(_write(_parse(agent), agent, form, tmp_path))
    prompts = [one.text for one in facts.conversation if one.role == "user"]
    assert prompts == ["build it, never touch vendor/", "yes", "now the docs, and\nkeep them short"]
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "now the docs, and\nkeep them short"
    assert [one.action for one in facts.files if one.path.endswith("parse.py")] == ["created"]
    assert "Slower." not in [one.text for one in facts.conversation]
    assert facts.background == ()
    assert facts.skipped_lines == 0


@pytest.mark.size("test")
@pytest.mark.parametrize("agent", _READERS)
def test_a_summary_and_an_interruption_are_read(agent: str, tmp_path: Path) -> None:
    """Both say how far what stands above can be trusted."""
    text = (
        "@META agent={agent}\n@U one\n@A Done.\n@C Goal: two\n@U two\n@a On it.\n@INT\n@U no, three\n@LIMIT"
    )
    facts = _read(lay_out(_parse(agent, text), str(tmp_path), talk=False))
    assert facts.summary == "Goal: two"
    assert [one.text for one in facts.conversation if one.role == "user"] == ["one", "two", "no, three"]


@pytest.mark.size("test")
@pytest.mark.parametrize("agent", _READERS)
def test_a_cleared_conversation_begins_anew(agent: str, tmp_path: Path) -> None:
    """The user wanted what stood before it forgotten."""
    text = "@META agent={agent}\n@U one\n@A Done.\n@CLEAR\n@U two\n@A Done too.\n@LIMIT"
    facts = _read(lay_out(_parse(agent, text), str(tmp_path), talk=False))
    assert [one.text for one in facts.conversation] == ["two", "Done too."]


@pytest.mark.size("test")
def test_the_tree_is_as_the_edits_leave_it(tmp_path: Path) -> None:
    """What was undone is clean, what was created is new, and a packet may ask git."""
    text = """@META agent=claude
@U go
@W new.py
x = 1
@E a.py
-one
+two
@E a.py
-two
+one
@E b.py
+more
@A Done.
"""
    laid = lay_out(_parse("claude", text), str(tmp_path), talk=False)
    assert git(laid.repository, "status", "--porcelain").splitlines() == [" M b.py", "?? new.py"]
    assert git(laid.repository, "diff", "--numstat").split() == ["1", "0", "b.py"]


@pytest.mark.parametrize("name", list_cases())
def test_talk_is_woven_in_between_and_changes_nothing(name: str) -> None:
    """The same every time, in the order of the script, and never above what answers the line before."""
    case = load_case(name)
    told = weave(case)
    assert told == weave(case)
    own = {id(event) for event in case.events}
    assert [event for event in told if id(event) in own] == list(case.events)
    assert len(told) > len(case.events) or case.meta.get("noise") == "0"
    above = {id(event): before for before, event in itertools.pairwise(told)}
    for before, event in itertools.pairwise(case.events):
        if event.more.get("held") or (event.kind == "prompt" and "?" in before.text):
            assert above[id(event)] is before


def test_ordinary_talk_is_known_by_its_beginnings() -> None:
    """The share of talk is measured by these: nothing of the bank may slip through."""
    names = {"{f}": "a.py", "{g}": "b.py", "{n}": "12", "{m}": "3"}
    filled = []
    for text in read_sentences():
        for blank, name in names.items():
            text = text.replace(blank, name)  # noqa: PLW2901 - filled in step by step
        filled.append(text)
    score = score_text("\n".join(filled), Truth(()))
    assert score.talk / score.characters > 0.95
    assert len(read_bank()) == 35
    assert all(exchange[0].kind == "prompt" for exchange in read_bank())


@pytest.mark.parametrize("name", list_cases())
def test_an_empty_packet_answers_nothing(name: str) -> None:
    """A scorer that accepts nothing would accept anything."""
    truth = load_case(name).truth
    score = score_text("", truth)
    assert set(score.grades) == {0}
    assert (score.full, score.part, score.misleading, score.leaked) == (0, 0, (), ())
    assert truth.questions


@pytest.mark.size("test")
@pytest.mark.parametrize("name", list_cases())
def test_the_whole_session_answers_every_question(name: str, tmp_path: Path) -> None:
    """What cannot be answered from the session cannot be asked of a packet; and it holds every secret."""
    laid = lay_out(load_case(name), str(tmp_path))
    score = score_text(laid.digest, laid.case.truth)
    assert [
        one.question for one, given in zip(laid.case.truth.questions, score.grades, strict=True) if given < 1
    ] == []
    assert set(score.leaked) == set(laid.case.truth.secrets)


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


def test_an_answer_stands_in_one_place() -> None:
    """A number here and its reason a page below answer nothing together."""
    question = Question("decision", "?", "", (("100", "limit"), ("batch",)), "about")
    assert grade(f"100{'.' * (NEAR - 10)}limit, batch", question) == 1
    assert grade(f"100{'.' * (NEAR + 10)}limit, batch", question) == 0.5
    assert grade(f"100{'.' * (NEAR + 10)}limit", question) == 0
    assert grade("about", question) == 0.5
    assert not is_near("limit", ("100", "limit"))


def test_what_is_looked_up_counts_beside_the_text() -> None:
    """It answers by itself, not by standing next to the packet's last line."""
    truth = Truth((Question("goal", "which?", "", (("one", "two"),)),))
    assert score_text("one", truth).full == 0
    assert score_text("one", truth, lookup=lambda _: "two").full == 0
    assert score_text("", truth, lookup=lambda question: f"{question.question} one two").full == 1


def test_lines_that_are_called_settled_are_listed() -> None:
    """Whoever reads them does not ask again, so each has to be true."""
    text = "# Task\nx\n## Decisions (settled: do not reopen them)\n- a\n  because\n\n- b\n## Plan\n- c\n"
    assert list_settled(text) == ["- a\n  because", "- b"]
    assert list_settled("# Task\n- a\n") == []
    truth = Truth((), (Trap("t", "because", ""),))
    assert score_text(text, truth).settled_untrue == 1


def test_a_truth_that_cannot_be_meant_is_refused() -> None:
    """An invalid pattern would never be found, and a question without one always."""
    with pytest.raises(ValueError, match="not a valid pattern"):
        parse_truth("Q goal | what? | this | (")
    with pytest.raises(ValueError, match="a question has"):
        parse_truth("Q goal | what? | this")
    with pytest.raises(ValueError, match="names no agent"):
        _parse("nobody")
    with pytest.raises(ValueError, match="takes back more"):
        _parse("claude", "@META agent=claude\n@REWIND 2")


@pytest.mark.size("test")
def test_the_table_says_what_a_packet_misses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever makes packets better reads it, and the packets beside it."""
    monkeypatch.setenv("AGENT_RELAY_HOME", str(tmp_path / "home"))
    with open(tmp_path / "tiny.truth", "w", encoding="utf-8") as file:
        file.write(
            "Q goal | What? | build it | build it\nQ rejected | Why no regex? | slower | regex && Slower"
        )
    with open(tmp_path / "tiny.case", "w", encoding="utf-8") as file:
        file.write(_SESSION.replace("{agent}", "claude"))
    words = ["tiny", "-v", "--no-talk", "--cases", str(tmp_path), "--keep", str(tmp_path / "kept")]
    monkeypatch.setattr("sys.argv", ["fidelity", *words])
    main()
    out = capsys.readouterr().out
    assert "tiny → codex" in out
    assert "rejected: Why no regex? → slower" in out
    assert "first target: full 50.0%, with parts 50.0%, misleading 0.00 a session, leaks 0" in out
    assert sorted(os.listdir(tmp_path / "kept")) == ["tiny-codex.md", "tiny-digest.txt", "tiny-gemini.md"]
