import io
import os
import sys
import tempfile

import pexpect
import pytest

from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.demo import PlainLog
from agent_relay.faces.cli.dispatch import report_bug
from agent_relay.faces.cli.options import parse_open_words
from agent_relay.faces.render.output import plain, render_table
from tests.faces.cli_run import World
from tests.support import preloaded
from tests.support.measured import measured


def test_an_agents_words_become_the_wish_the_daemon_hears() -> None:
    """One spelling on the command line, one on the wire."""
    words = ["--task", "fix it", "--focus=the tests", "--new", "--no-launch", "--", "--model", "x"]
    assert parse_open_words(words) == {
        "task": "fix it",
        "focus": "the tests",
        "new": True,
        "no_launch": True,
        "args": ["--model", "x"],
    }


def test_a_word_that_is_no_option_is_the_task() -> None:
    """Agents take their first prompt that way, and so does whoever types relay's name before theirs.

    What stands after the dashes is the agent's own: a prompt there must not become relay's task.
    """
    for words in ("fix", "--task fix", "--task=fix", "--new fix", "fix --new"):
        assert parse_open_words(words.split())["task"] == "fix"
    told = {"task": "fix it", "args": ["review", "--model", "x"]}
    assert parse_open_words(["fix it", "--", "review", "--model", "x"]) == told


def test_words_that_cannot_be_meant_are_refused() -> None:
    """A forgotten quote must not start an agent on half a task."""
    for words, sentence in (
        (["--task"], "--task needs a value"),
        (["--nope"], "unknown option '--nope'"),
        (["fix", "it"], "the task must be one argument, and 'it' is a second one"),
        (["fix it", "--task", "that"], "the task is given twice: 'fix it' and --task"),
        (["--task=that", "fix it"], "the task is given twice: 'fix it' and --task"),
        ([" "], "the task is empty"),
        (["-"], "the task cannot be read from standard input: the agent needs the terminal"),
        (["--new", "--session", "S"], "--new and --session cannot be used together"),
    ):
        with pytest.raises(WrongUseError) as caught:
            parse_open_words(words)
        assert caught.value.sentence == sentence
        assert caught.value.hint


def test_a_bug_is_70_and_its_report_holds_no_contents(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reports are pasted into public issues; what the user typed has no place in them."""
    monkeypatch.setenv("AGENT_RELAY_HOME", f"{tmp_path}/home")
    with pytest.raises(ValueError, match="secret") as caught:
        _break()
    assert report_bug(caught.value, ["the user's secret agent"]) == 70
    (name,) = os.listdir(f"{tmp_path}/home/state/crashes")
    with open(f"{tmp_path}/home/state/crashes/{name}", encoding="utf-8") as stream:
        report = stream.read()
    assert "ValueError" in report
    assert "secret" not in report + capsys.readouterr().err


def _break() -> None:
    raise ValueError("the user's secret words")


@pytest.mark.size("test")
def test_a_command_that_ends_at_once_has_said_everything(world: World) -> None:
    """A report that was cut short by the end of its process would pass for a whole one."""
    for words, status, out, err in (
        (("--all", "--json"), 0, '"rows": []', ""),
        (("--nope",), 2, "", "--nope"),
        (("--all", "--csv"), 0, "wall_s", ""),
    ):
        done = world.run("metrics", *words)
        assert done.status == status
        assert out in done.out
        assert err in done.err
        assert done.out == "" or done.out.endswith("\n")


def test_names_are_shown_harmlessly() -> None:
    """A file name can hold anything; a terminal obeys anything.

    Blanks of other kinds, which agents show before their prompts, are blanks; half a pair is what it is.
    """
    names = {
        "naïve → ok": "naïve → ok",
        "a\nb\x1b[2J\x07": r"a\nb\x1b[2J\x07",
        os.fsdecode(b"caf\xe9"): r"caf\xe9",
        "a\ud800b": r"a\ud800b",
        "»\xa0fix\u202fit\u2003now": "» fix it now",
        "\u3000中\x07": "  中\\x07",
    }
    assert {name: plain(name) for name in names} == names


def test_columns_are_as_wide_as_their_cells() -> None:
    """Plain output is read by eyes and by awk."""
    assert render_table(("a", "b"), [("x", "1"), ("longer", "2")]) == "a       b\nx       1\nlonger  2\n"
    assert render_table(("a", "b"), [("漢字", "1"), ("x", "2")]) == "a     b\n漢字  1\nx     2\n"


def test_a_plain_log_shows_rows_without_control_sequences_and_once() -> None:
    """The demo's record in a build log must be readable, however the bytes were cut.

    Below the bar an agent's screen is painted row by row, and again where one of them changed.
    """
    in_place = "first\r\n\x1b[2;1Hsecond\x1b[9;1Hbar\x1b[1;1Hfirst\x1b[2;1Hsecond\x1b[9;1Hother bar\x1b[3;1H"
    for text, rows in (
        ("> old\r\x1b[J\x1b[31m! limit\x1b[0m\r\n\x1b]0;title\x07* said\r\n\r\n* said\r\n", "! limit,* said"),
        (in_place, "first,second,bar,other bar"),
    ):
        for cut in (1, 5, 7, 1000):
            out = io.StringIO()
            log = PlainLog(out)
            for start in range(0, len(text), cut):
                log.write(text[start : start + cut])
            assert out.getvalue() == "".join(f"  | {row}\n" for row in rows.split(","))


@pytest.mark.size("test")
def test_a_reader_that_has_left_is_told_by_the_status(world: World) -> None:
    """As of a program that SIGPIPE ended, in silence; also of a command that is said without words."""
    for words in ("sessions", "limits", "handoff list", "sessions --json", "packet schema"):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb"), tempfile.TemporaryFile() as errors, open(os.devnull, "rb") as nothing:
            streams = [nothing.fileno(), writer, errors.fileno()]
            process = preloaded.start(
                preloaded.COMMAND, words.split(), env=world.environ(), cwd=world.cwd, streams=streams
            )
            assert (words, process.wait(60)) == (words, 141)
            errors.seek(0)
            assert errors.read() == b""


@pytest.mark.size("test")
def test_a_title_is_shown_on_a_terminal_as_it_is(world: World) -> None:
    """It is what somebody asked an agent: read as markup, it ended the list of sessions, or was a link."""
    titles = [r"grep '\[/]' :bug:", r"\[link=http://x.example]press", ":bug: of it"]
    printing = "from agent_relay.faces.render.output import print_table"
    code = f"{printing}; import sys; print_table(['title'], [[one] for one in sys.argv[1:]], empty='')"
    environ = world.environ() | measured() | {"TERM": "xterm-256color"}
    child = pexpect.spawn(
        sys.executable,
        ["-c", code, *titles],
        cwd=world.cwd,
        env=environ,
        encoding="utf-8",
        dimensions=(24, 90),
    )
    child.expect(pexpect.EOF, timeout=60)
    assert child.before is not None
    assert [line.rstrip() for line in child.before.splitlines()][1:] == titles
    child.close()
    assert child.exitstatus == 0
