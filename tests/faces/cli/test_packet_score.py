"""`agent-relay packet verify --facts` says how much of what was planted reaches a successor."""

import json
import os
from pathlib import Path

import pytest

from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.faces.cli.session.packet import PACKET
from agent_relay.faces.cli.typer_runner import run_functions
from tests.support.corpus import CORPUS, lay_out


def run(words: list[str]) -> int:
    """The exit status of `agent-relay packet` with these words."""
    return run_functions(PACKET, words, name="packet", about="packets")


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of whoever runs the tests counts."""
    monkeypatch.setenv("AGENT_RELAY_HOME", str(tmp_path / "home"))


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
