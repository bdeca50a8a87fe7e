"""What was planted in agents' transcripts reaches every target, and `packet verify --facts` says how much."""

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.domain.values import replace
from agent_relay.faces.cli.session.packet import PACKET
from agent_relay.faces.cli.session.packet_transfer import build_offline
from agent_relay.faces.cli.typer_runner import run_functions
from agent_relay.packet.freshness import score_text
from tests.support.corpus import lay_out, list_names
from tests.support.corpus_story import CORPUS
from tests.support.sizes import sized

pytestmark = pytest.mark.size("every")


_TARGETS = ("claude", "codex", "gemini", "opencode")
_CHARACTERS = 8_000
_PLAIN = ("constraint", "todo_done", "todo_open", "error", "prompt")


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of whoever runs the tests counts."""
    monkeypatch.setenv("AGENT_RELAY_HOME", str(tmp_path / "home"))


@pytest.mark.size("check")
def test_the_corpus_has_four_transcripts_of_every_agent() -> None:
    """A table over a corpus that lost its files would still be perfect."""
    assert Counter(name.partition("-")[0] for name in list_names()) == dict.fromkeys(_TARGETS, 4)


@pytest.mark.parametrize("name", sized(list_names(), {f"{agent}-recorded" for agent in _TARGETS}))
def test_nothing_planted_is_lost_or_leaked(name: str, tmp_path: Path) -> None:
    """Constraint, decision, rejection, correction, both steps, last error, waiting prompt; three secrets.

    Each stands where the next handoff finds it: what is only found in the last exchange is lost with it.
    """
    sample = lay_out(name, str(tmp_path))
    for target in _TARGETS:
        packet, text = build_offline(sample.agent, sample.path, target)
        score = score_text(text, sample.planting)
        assert (score.missing, score.leaked, score.kinds, score.secrets) == ((), (), 8, 3), target
        assert score.characters <= _CHARACTERS, target
    sections = _list_sections(packet)
    for fact in sample.planting.fact:
        alone = replace(sample.planting, fact=(fact,), secret=())
        assert score_text(sections[fact.kind], alone).is_perfect, fact


def _list_sections(packet: ResumePacket) -> dict[str, str]:
    """By kind of fact, the words of the section it belongs into; the task is the user's words as well.

    What was chosen, given up and corrected stands in the ledger, or among the user's rules.
    """
    plan = "\n".join(f"{one.status} {one.text}" for one in packet.plan)
    rules = "\n".join(one.text for one in packet.constraints)
    said = "\n".join(one.said for one in packet.exchanges)
    ledger = "\n".join(f"{one.on}\n{one.said}\n{one.failed}\n{one.told}" for one in packet.exchanges)
    return {
        "constraint": f"{rules}\n{packet.task}",
        "correction": f"{rules}\n{said}",
        "decision": f"{rules}\n{ledger}",
        "rejected": f"{rules}\n{ledger}",
        "todo_done": plan,
        "todo_open": plan,
        "error": "\n".join(f"{one.summary} {one.evidence}" for one in packet.blockers),
        "prompt": packet.unprocessed_prompt.text if packet.unprocessed_prompt else "",
    }


def _count(group: Literal["hard", "unseen"], folder: str) -> tuple[Counter[str], Counter[str]]:
    """Facts kept anywhere in the text, and in the section they belong into; nothing leaks.

    Each goes to one of the targets: that all are told alike is proved by those above.
    """
    found: Counter[str] = Counter()
    placed: Counter[str] = Counter()
    for number, name in enumerate(list_names(group)):
        sample = lay_out(name, folder)
        packet, text = build_offline(sample.agent, sample.path, _TARGETS[number % len(_TARGETS)])
        score = score_text(text, sample.planting)
        assert (score.leaked, score.secrets) == ((), 3), name
        assert score.characters <= _CHARACTERS, name
        found.update(score.found)
        sections = _list_sections(packet)
        for fact in sample.planting.fact:
            alone = replace(sample.planting, fact=(fact,), secret=())
            placed[fact.kind] += score_text(sections[fact.kind], alone).is_perfect
    return found, placed


def test_hard_wordings_are_found_by_where_they_stand(tmp_path: Path) -> None:
    """Ten transcripts in which no phrase gives a decision away; the rules were made looking at them."""
    found, placed = _count("hard", str(tmp_path))
    assert (found["decision"], found["rejected"], found["correction"]) == (22, 16, 22)
    assert (placed["decision"], placed["rejected"], placed["correction"]) == (22, 16, 22)
    assert [found[kind] for kind in _PLAIN] == [10] * 5


def test_wordings_the_rules_were_not_written_for_are_found_as_often_as_the_pages_say(tmp_path: Path) -> None:
    """Six transcripts were set aside before the rules were made: this number is the honest one."""
    found, placed = _count("unseen", str(tmp_path))
    assert (found["decision"], found["rejected"], found["correction"]) == (18, 11, 18)
    assert (placed["decision"], placed["rejected"], placed["correction"]) == (18, 11, 18)
    assert [found[kind] for kind in _PLAIN] == [6] * 5


@pytest.mark.size("check")
def test_the_unseen_transcripts_are_those_that_were_set_aside() -> None:
    """Reworded afterwards, they would measure the author."""
    with open(os.path.join(CORPUS, "UNSEEN.sha256"), encoding="ascii") as file:
        digests = dict(reversed(line.split()) for line in file)
    assert sorted(digests) == sorted(
        f"{name}/{part}" for name in list_names("unseen") for part in ("FACTS.toml", "STORY.toml")
    )
    for path, digest in digests.items():
        assert hashlib.sha256(Path(os.path.join(CORPUS, path)).read_bytes()).hexdigest() == digest, path


@pytest.mark.size("test")
def test_errors_name_where_their_evidence_stands(tmp_path: Path) -> None:
    """An excerpt is checked, not believed.

    `agent-relay recall` searches sessions; whoever was told of it where there is none would find nothing.
    """
    sample = lay_out("claude-recorded", str(tmp_path))
    packet, text = build_offline(sample.agent, sample.path, "codex")
    assert [one.source.transcript for one in packet.blockers if one.source] == [f"{sample.path}:35"]
    assert "Evidence: record:35\n" in text
    assert f"record: {sample.path}\n" in text
    assert "agent-relay recall" not in text
    assert text.endswith("Z\n</handoff-context>\n")


def run(words: list[str]) -> int:
    """The exit status of `agent-relay packet` with these words."""
    return run_functions(PACKET, words, name="packet", about="packets")


@pytest.mark.size("check")
def test_a_packet_is_built_and_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same command in a shell and in a pipeline."""
    sample = lay_out("codex-recorded", str(tmp_path))
    facts = os.path.join(CORPUS, "codex-recorded", "FACTS.toml")
    words = ["verify", "--facts", facts, "--transcript", sample.path, "--to", "gemini"]
    assert run(words) == ExitCode.DONE
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["constraint  1/1", "decision    1/1"]
    assert lines[8:10] == ["kinds       8/8", "secrets     0 of 3 found"]
    assert run([*words, "--json"]) == ExitCode.DONE
    told = json.loads(capsys.readouterr().out)
    assert (told["kinds_found"], told["secrets_found"], told["missing"]) == (8, 0, [])


@pytest.mark.size("check")
def test_what_is_missing_and_what_leaked_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any text can be judged, whoever wrote it; the status fails the pipeline."""
    facts, text = tmp_path / "FACTS.toml", tmp_path / "p.md"
    facts.write_text(
        '[[fact]]\nkind = "decision"\nsays = ["use a lock"]\n[[secret]]\nkind = "pin"\ntext = "12345678"\n'
    )
    text.write_text("pin 12345678")
    assert run(["verify", "--facts", str(facts), "--text", str(text)]) == ExitCode.FAILED
    assert capsys.readouterr().out.splitlines() == [
        "decision    0/1",
        "kinds       0/1",
        "secrets     1 of 1 found",
        "characters  12",
        "missing decision: use a lock",
        "leaked: pin",
    ]


@pytest.mark.size("check")
def test_what_cannot_be_used_is_told_in_a_sentence(tmp_path: Path) -> None:
    """People write these files by hand; without one, what an option names would not be looked at."""
    facts = tmp_path / "FACTS.toml"
    for content, sentence in (
        (None, f"cannot read {facts}: No such file or directory"),
        ("[[fact", "is not TOML"),
        ('agent = "codex"\nfact = []\n', "holds no planted facts: fact:"),
        ('[[fact]]\nkind = "error"\nsays = ["x"]\n', "names no agent"),
        ('agent = "codex"\n[[fact]]\nkind = "error"\nsays = ["x"]\n', "names no transcript"),
    ):
        if content is not None:
            facts.write_text(content)
        with pytest.raises(WrongUseError) as told:
            run(["verify", "--facts", str(facts)])
        assert sentence in told.value.sentence
    for option in ("--text", "--transcript", "--to"):
        with pytest.raises(WrongUseError) as told:
            run(["verify", option, "x"])
        assert told.value.sentence == f"{option} needs --facts"
