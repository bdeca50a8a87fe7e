"""The shell's table of commands: whole, explained, and mirrored on the command line."""

from agent_relay.faces.cli.commands import COMMANDS, SHELL_COMMANDS
from agent_relay.faces.shell._commands import (
    ACTIONS,
    build_plain,
    is_command,
    render_shell_help,
    render_usage,
)


def test_every_command_the_shell_promises_is_there() -> None:
    """The list is the contract's; a command that goes missing is missed by habit."""
    assert set(SHELL_COMMANDS) >= {
        "use", "relay", "handoff", "attach", "status", "sessions", "resume", "agents", "limits", "metrics",
        "watch", "order", "model", "packet", "undo-handoff", "help", "exit",
    }  # fmt: skip


def test_every_command_explains_itself_and_names_its_plain_form() -> None:
    """Whatever is learnt here can be put into a script."""
    for name, command in SHELL_COMMANDS.items():
        lines = render_shell_help(name)
        assert lines[0].startswith(f"usage: /{name}")
        assert lines[-1].startswith("On the command line: "), name
        plain = command.shell_form.outside.split(",")[0].split()
        assert plain == ["Ctrl-D"] or plain[1] in {*COMMANDS, "AGENT", "--help"}, name


def test_what_the_shell_does_itself_is_in_the_table() -> None:
    """All others need a plain command to run."""
    assert set(ACTIONS) < set(SHELL_COMMANDS)
    assert set(SHELL_COMMANDS) - set(ACTIONS) - {"help"} < set(COMMANDS)


def test_the_help_lists_every_command_once() -> None:
    """It is made of the same table as everything else."""
    listed = [line.split()[0] for line in render_shell_help() if line.startswith("  /")]
    assert listed == [f"/{name}" for name in SHELL_COMMANDS]


def test_a_plain_command_is_about_this_session() -> None:
    """Nobody wants to type an id of 26 characters about what stands in front of them."""
    rows = {
        ("metrics", "", "S"): ("metrics", "S"),
        ("metrics", "--all", "S"): ("metrics", "--all"),
        ("metrics", "", ""): ("metrics",),
        ("packet", "", "S"): ("packet", "show", "S"),
        ("packet", "", ""): ("packet", "show"),
        ("limits", "clear demo", "S"): ("limits", "clear", "demo"),
        ("order", "--help", "S"): ("order", "--help"),
    }
    built = {given: tuple(build_plain(SHELL_COMMANDS[given[0]], *given[1:])) for given in rows}
    assert built == rows


def test_help_fits_an_ordinary_terminal() -> None:
    """A line broken in the middle of a word is hard to read and looks careless."""
    usages = {f"usage: {render_usage(command)}" for command in SHELL_COMMANDS.values()}
    lines = [line for name in ("", *SHELL_COMMANDS) for line in render_shell_help(name, columns=80)]
    assert [line for line in lines if len(line) > 79 and line not in usages] == []
    assert max(len(line) for line in render_shell_help("use", columns=50)) < 60


def test_a_message_may_begin_with_a_path_or_with_code() -> None:
    """What people paste first is often a file's name; a misspelt command must not become a message."""
    messages = ["/var/build.log says that it failed", "/etc/hosts", "/exit\nis what the user typed"]
    messages += ["/* why is this\n * so */", "// a comment", "plain"]
    assert [line for line in messages if is_command(line)] == []
    commands = ["/status", "/oder", "/use codex see /var/x\nand ./y", "!git status"]
    assert [line for line in commands if not is_command(line)] == []
