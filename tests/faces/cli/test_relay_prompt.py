"""Behind the relay key the plain commands answer about the session one is in, and explain themselves."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.client.connection import Connection, find_daemon_pid
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.state import State
from agent_relay.faces.cli.command_help import render_key_help
from agent_relay.faces.cli.commands import COMMANDS, KEY_COMMANDS
from agent_relay.faces.cli.dispatch import run
from agent_relay.faces.cli.session.relay_prompt import PromptContext, run_prompt_line
from agent_relay.faces.cli.session.slash_commands import find_plain, take_text
from agent_relay.system.disk.folders import get_folders
from tests.support.at_work import begin, has_taken_over, working_world
from tests.support.person import Person
from tests.support.relay_world import RelayWorld
from tests.support.seats import seat

SESSION = "01K0000000000000000000000A"


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents."""
    with working_world() as made:
        yield made


def ask(person: Person, line: str, answer: str) -> None:
    """The person types a line behind the relay key, reads the answer and goes back to the agent."""
    person.type(b"\x1d", shows="/use AGENT")
    person.type(f"{line}\r".encode())
    person.wait_until(lambda: answer in person.text() and " any " in person.text(), answer)
    person.type(b"q")
    person.wait_until(lambda: "ready | " in person.text() and " any " not in person.text(), "the agent")


def hand_over(world: RelayWorld, person: Person, session: str) -> str:
    """The id of a handoff made behind the relay key with options."""
    person.wait_for("ready | demo")
    person.type(b"\x1d/use understudy --focus 'the \"red\" door' --expect doors.txt --priority high\r")
    found = world.wait_for(session, has_taken_over, "the next agent took over")
    person.wait_for("ready | understudy")
    return found.done[0].id


@pytest.mark.size("every")
def test_records_packets_and_agents_are_looked_up_without_leaving_the_agent(world: RelayWorld) -> None:
    """Looking something up must cost neither the screen nor the session."""
    session = begin(world, task="paint the shed")
    with seat(world, "attach", rows=24) as person:
        handoff = hand_over(world, person, session)
        ask(person, "/handoff list", "doors.txt")
        ask(person, f"/handoff show {handoff[-8:]}", "demo → understudy (manual): working")
        ask(person, "/handoff history", f"session {session}")
        ask(person, "/handoff plan", "because")
        ask(person, f"/handoff complete {handoff} --note 'looks good'", f"Handoff {handoff} is closed.")
        ask(person, "/handoff list", "No handoff is open.")
        ask(person, "/packet", "<handoff-context")
        ask(person, "/packet path", "/resume/0001-")
        ask(person, "/limits", "No agent is resting.")
        ask(person, "/sessions", session)
        ask(person, "/agents", "understudy")
        ask(person, "/order", "demo understudy")
        ask(person, "/metrics", "understudy")
        ask(person, "/help", "/handoff list|show ID")


@pytest.mark.size("every")
def test_what_is_wrong_is_said_behind_the_relay_key(world: RelayWorld) -> None:
    """An error is the command's own sentence, and the agent goes on."""
    begin(world)
    with seat(world, "attach", shows="ready | demo") as person:
        ask(person, "/handoff show NOBODY", "no handoff has the id 'NOBODY'")
        ask(person, "/handoff retry", "missing argument")
        ask(person, "/handoff show 'open", "unterminated quote")
        ask(person, "/use demo --focus door", "demo is at work here already")
        ask(person, "/use understudy --new", "/use does not take '--new'")
        ask(person, "/use understudy --model", "--model needs a value")
        ask(person, "/use nobody --model x", "there is no agent 'nobody'")
        ask(person, "/frobnicate", "there is no command '/frobnicate' here")
        ask(person, "/packet edit", "there is no packet here yet")
        ask(person, "/packet edit 7", "/packet edit does not take '7'")
        ask(person, "/packet show", "see: /status")
        ask(person, "/handoff show NOBODY", "/handoff history")
        ask(person, "/undo-handoff", "has had no handoff")


@pytest.mark.size("test")
def test_an_agent_is_used_with_a_model_a_focus_and_what_is_expected(world: RelayWorld) -> None:
    """The prompt takes what the plain command takes: nobody has to leave for an option, or to look it up."""
    session = begin(world)
    with seat(world, "attach") as person:
        handoff = hand_over(world, person, session)
        ask(person, "/handoff list", "doors.txt")
    (done,) = world.session(session).done
    assert (done.id, done.focus, done.terms.deliverables) == (handoff, 'the "red" door', ("doors.txt",))
    assert done.terms.priority == "high"


@pytest.mark.size("every")
def test_a_handoff_to_the_next_is_taken_back_and_told_of_without_leaving_the_agent(world: RelayWorld) -> None:
    """Whoever does not care who it is types no name; who sees that it is worse wants the other one back."""
    session = begin(world)
    with seat(world, "attach", shows="ready | demo") as person:
        person.type(b"\x1d/relay the red door\r")
        found = world.wait_for(session, has_taken_over, "the next agent took over")
        assert found.done[0].focus == "the red door"
        person.wait_for("ready | understudy")
        person.type(b"\x1d/undo-handoff\r")
        world.wait_for(session, lambda found: found.agent == "demo" and len(found.done) == 2, "demo is back")
        person.wait_for("ready | demo")
        ask(person, "/log", "understudy")


EDITOR = """#!/bin/sh
printf 'EDITOR on %s\\n' "$(stty size)"
read line
printf '%s\\n' "$line" >> "$1"
"""


@pytest.mark.size("every")
def test_a_packet_is_edited_in_the_agents_terminal(world: RelayWorld) -> None:
    """What a successor is told is corrected where one sees that it is wrong; the agent is back untouched."""
    editor = f"{world.folder}/editor"
    with open(editor, "w", encoding="utf-8") as stream:
        stream.write(EDITOR)
    os.chmod(editor, 0o700)
    session = begin(world, task="paint the shed")
    text = f"{world.project}/.agent-relay/sessions/{session}/resume/0001-understudy.md"
    with seat(world, "attach", rows=24, variables={"VISUAL": "", "EDITOR": editor}) as person:
        person.wait_for("ready | demo")
        ask(person, "/use understudy --no-launch --task 'paint it'", "Packet for understudy:")
        assert world.session(session).agent == "demo"
        person.type(b"\x1d/packet edit\r", shows="EDITOR on 24 100")
        person.type(b"mind the \x7f cat\r", shows="understudy will read packet 1 as you left it")
        person.type(b"q")
        person.wait_until(lambda: "EDITOR" not in person.text(), "the agent's screen is back")
        person.wait_for("ready | demo")
        person.type(b"hello\r", shows="demo heard you")
        with open(text, encoding="utf-8") as stream:
            assert stream.read().endswith("mind the cat\n")
        hand_over(world, person, session)
        ask(person, "/packet edit", "was given to its agent already, so an edit would change nothing")


@pytest.mark.size("every")
def test_escape_ends_a_command_that_takes_long(world: RelayWorld) -> None:
    """A command that hangs must not keep anybody from the agent; no process of it stays."""
    session = begin(world)
    with seat(world, "attach", shows="ready | demo") as person:
        living = world.find_workers()
        daemon = find_daemon_pid(world.folders)
        assert daemon is not None
        os.kill(daemon, signal.SIGSTOP)
        try:
            person.type(b"\x1d/handoff plan\r", shows="agent-relay handoff 1 s   Esc cancels")
            person.type(b"\x1b", shows="Cancelled")
        finally:
            os.kill(daemon, signal.SIGCONT)
        person.type(b"q", shows="ready | demo")
        assert world.find_workers() <= living
    assert world.session(session).state is State.READY


def test_everything_the_help_names_is_known() -> None:
    """A prompt that offers what it does not know is a liar."""
    help_lines = render_key_help()
    named = {word for line in help_lines for word in line.replace("|", " ").split() if word.startswith("/")}
    plain = {word for word in named if find_plain(word, "", SESSION)}
    assert plain == {
        *("/agents", "/doctor", "/handoff", "/limits", "/metrics", "/order", "/packet"),
        *("/recall", "/relay", "/sessions", "/status", "/stop", "/undo-handoff"),
    }
    assert named - plain == {"/use", "/log", "/detach"}
    assert all(word in " ".join(help_lines) for word in COMMANDS["handoff"].words)


def test_a_line_is_the_plain_command_about_this_session() -> None:
    """Two sessions in one repository: behind the key the one on the screen is meant."""
    commands = {
        "/packet": "packet show S",
        "/packet show": "packet show S",
        "/packet show --number 1": "packet show S --number 1",
        "/packet show OTHER": "packet show OTHER",
        "/packet diff --json": "packet diff S --json",
        "/packet schema": "packet schema",
        "/handoff history": "handoff history S",
        "/handoff history OTHER": "handoff history OTHER",
        "/handoff plan --needs edit": "handoff plan --needs edit --session S",
        "/handoff plan --session OTHER": "handoff plan --session OTHER",
        "/handoff retry ID --yes": "handoff retry ID --yes",
        "/undo-handoff": "undo-handoff S",
        "/metrics": "metrics S",
        "/metrics --by leg": "metrics S --by leg",
        "/metrics --all": "metrics --all",
        "/limits clear demo": "limits clear demo",
        "/status --all": "status --all",
        "/daemon stop": "",
        "packet": "",
    }
    for line, words in commands.items():
        word, _, rest = line.partition(" ")
        assert " ".join(find_plain(word, rest, SESSION)).replace(SESSION, "S") == words


def test_a_use_without_an_agent_is_refused() -> None:
    """`/handoff the tests first` says what to look at; a use has to name somebody."""

    def connect() -> None:
        raise AssertionError("nothing is asked")

    with pytest.raises(WrongUseError, match="needs an agent"):
        run_prompt_line("/use --model x", PromptContext(SESSION, "/nowhere", connect, size=(24, 80)))  # type: ignore[arg-type]


FIRST = {"use": "/use codex"}
"""The words before what is tried, for commands that need some."""


def refuse_to_connect() -> Connection:
    raise AssertionError("something is asked of the daemon")


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PromptContext:
    """The prompt of a session; neither a daemon nor a process is needed: its folder is gone."""
    monkeypatch.setenv("AGENT_RELAY_HOME", f"{tmp_path}/home")
    return PromptContext(SESSION, f"{tmp_path}/tree/gone", refuse_to_connect, size=(24, 80))


def read(line: str, context: PromptContext, capsys: pytest.CaptureFixture[str]) -> str:
    """What is shown for the line; of what another process would be started for, what that one would say."""
    try:
        found = run_prompt_line(line, context)
    except RelayError as error:
        if "cannot be started" not in error.sentence:
            raise
        word, _, rest = line.partition(" ")
        run([*find_plain(word, rest, SESSION)])
        shown = capsys.readouterr()
        return shown.out + shown.err
    assert isinstance(found, tuple)
    return "\n".join(found)


@pytest.mark.parametrize("name", KEY_COMMANDS)
def test_help_and_options_a_command_does_not_take_do_nothing(
    context: PromptContext, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`/stop --help` ended the agent, `/relay --help` handed over; a mistyped option is no focus either."""
    for option in ("--help", "-h"):
        shown = read(f"/{name} {option}", context, capsys)
        assert shown.lower().startswith("usage: ")
        assert name in shown.splitlines()[0]
        if name in FIRST:
            assert read(f"{FIRST[name]} {option}", context, capsys) == shown
            assert read(f"{FIRST[name]} --model m {option}", context, capsys) == shown
    for word in ("--nope", "-x"):
        try:
            shown = read(f"{FIRST.get(name, f'/{name}')} {word}", context, capsys)
        except WrongUseError as error:
            shown = error.sentence
        assert word in shown or shown == f"/{name} takes no arguments"
    assert find_daemon_pid(get_folders()) is None


def test_words_a_command_does_not_take_are_refused(context: PromptContext) -> None:
    """What is ignored was meant somehow."""
    for line in ("/stop x y", "/log x", "/detach x"):
        with pytest.raises(WrongUseError, match="takes no arguments"):
            run_prompt_line(line, context)


def test_help_names_the_command_line_as_it_is_typed_there(
    context: PromptContext, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said that on the command line one types /use."""
    assert read("/use --help", context, capsys).splitlines()[-1] == (
        "On the command line: agent-relay AGENT --session ID"
    )


def test_a_misspelt_sub_command_is_no_focus() -> None:
    """`/handoff shwo list` handed over; the command line refuses it."""
    for text in ("shwo list", "shwo", "lst", "narative --json", "retri 01K"):
        with pytest.raises(WrongUseError, match="/handoff has no command"):
            take_text("handoff", text, words=KEY_COMMANDS["handoff"].words)


def test_all_else_is_a_focus() -> None:
    """And behind two dashes everything is."""
    texts = {
        **dict.fromkeys(["lint the code", "the tests", "tests", "- one\n- two", ""]),
        "-- --help is broken": "--help is broken",
        "-- lint first": "lint first",
        "--": "",
    }
    for text, focus in texts.items():
        told = take_text("handoff", text, words=KEY_COMMANDS["handoff"].words)
        assert told == (text if focus is None else focus)
