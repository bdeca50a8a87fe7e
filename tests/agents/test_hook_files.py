"""Hooks of ours come into a user's file beside what is there, and leave it byte for byte as it was."""

import errno
import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.agents.hook_files import HookFile, change_file, plan_install, plan_removal, read_status
from agent_relay.agents.launch import build_unmanaged_command
from agent_relay.domain.documents.agent_configuration import Hooks
from agent_relay.domain.errors import RelayError

HOOKS = Hooks(events=("Stopped", "Begun"), more={"timeout": 10})
COMMAND = build_unmanaged_command("/state/hooks/one", "/run/relay", "")
WRITTEN = {
    "hooks of the user's own": """{
    // what I like
    "model": "large",   "theme":"dark",
    "hooks": {
        "Stopped": [
            {"hooks": [{"type": "command", "command": "notify-me"}]} // mine
        ],
        "Other": []
    },
    /* the last */ "zeta": [1,2 , 3]
}
""",
    "an empty object": "{}",
    "an empty object over two lines": "{\n}\n",
    "one line": '{"model": "large"}',
    "tabs": '{\n\t"model": "large",\n\t"hooks": {\n\t\t"Begun": [ ]\n\t}\n}\n',
    "Windows' line ends": '{\r\n  "model": "large"\r\n}\r\n',
    "an empty object of hooks": '{"a": 1, "hooks": { } }',
    "a comment in the list": '{"hooks": {"Stopped": [ /* none yet */ ]}}\n',
    "what looks like a comment": '{"url": "https://example.com/*not*/", "b": "\\"//"}',
    "letters of everywhere": '{"näme": "日本 🦀", "hooks": {}}\n',
}


def make_file(folder: Path) -> HookFile:
    """The file as its adapter would name it."""
    return HookFile("one", "user", str(folder / "settings.json"), HOOKS)


def install(file: HookFile, command: str = COMMAND) -> None:
    """What `hooks install` does to one file."""
    change_file(file.path, lambda: plan_install(file, command))


def uninstall(file: HookFile) -> None:
    """What `hooks uninstall` does to one file."""
    change_file(file.path, lambda: plan_removal(file))


def read(path: str | Path) -> bytes:
    """The file's bytes."""
    with open(path, "rb") as stream:
        return stream.read()


def parse(path: str) -> dict[str, object]:
    """The object an agent would read there."""
    found = json.loads(read(path))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("before", WRITTEN.values(), ids=WRITTEN)
def test_a_file_is_after_uninstall_what_it_was(tmp_path: Path, before: str) -> None:
    """Order, comments, white space and line ends are the user's."""
    file = make_file(tmp_path)
    Path(file.path).write_bytes(before.encode())
    install(file)
    assert read_status(file, COMMAND).state == "installed"
    during = read(file.path)
    install(file)
    assert read(file.path) == during, "to install twice changed something"
    uninstall(file)
    assert read(file.path) == before.encode()
    assert read_status(file, COMMAND).state == "absent"


@pytest.mark.parametrize("before", WRITTEN.values(), ids=WRITTEN)
def test_what_the_user_wrote_is_in_the_file_meanwhile(tmp_path: Path, before: str) -> None:
    """Every byte of theirs stands there in its order; ours are in between."""
    file = make_file(tmp_path)
    Path(file.path).write_bytes(before.encode())
    install(file)
    rest = iter(read(file.path))
    assert all(byte in rest for byte in before.encode())


@pytest.mark.size("test")
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=12,
    ),
    st.sampled_from([None, 0, 1, 4, "\t"]),
    st.lists(st.fixed_dictionaries({"hooks": st.just([{"command": "mine"}])}), max_size=2),
)
def test_whatever_stands_in_it(
    tmp_path_factory: pytest.TempPathFactory, value: object, indent: int | str | None, own: list[object]
) -> None:
    """In any layout, the agent reads what it read before and our hooks; then what it read before."""
    folder = tmp_path_factory.mktemp("any")
    file = make_file(folder)
    known: dict[str, object] = {"value": value, "hooks": {"Stopped": own, "more": value}}
    before = json.dumps(known, indent=indent).encode()
    Path(file.path).write_bytes(before)
    install(file)
    found = parse(file.path)
    hooks = found["hooks"]
    assert isinstance(hooks, dict)
    assert [*hooks["Stopped"]][: len(own)] == own
    assert (len(hooks["Stopped"]), len(hooks["Begun"])) == (len(own) + 1, 1)
    assert (found["value"], hooks["more"]) == (value, value)
    uninstall(file)
    assert read(file.path) == before


def test_what_the_user_changed_meanwhile_stays_changed(tmp_path: Path) -> None:
    """They add hooks before and behind ours, and edit the rest."""
    file = make_file(tmp_path)
    Path(file.path).write_text(
        '{\n  "model": "large",\n  "hooks": {"Stopped": [{"hooks": []}]}\n}\n', "utf-8"
    )
    install(file)
    text = read(file.path).decode().replace('"large"', '"small"').replace('"Stopped": [', '"Stopped": [1, ')
    text = text.replace('"Begun": [', '"Begun": [{"theirs": true}, ')
    Path(file.path).write_text(text, "utf-8")
    uninstall(file)
    assert parse(file.path) == {
        "model": "small",
        "hooks": {"Stopped": [1, {"hooks": []}], "Begun": [{"theirs": True}]},
    }


def test_a_file_that_an_agent_wrote_anew_loses_ours_alone(tmp_path: Path) -> None:
    """Agents write their settings whole when something is changed on their screens."""
    file = make_file(tmp_path)
    before = {"model": "large", "hooks": {"Other": [{"hooks": [{"command": "mine"}]}]}}
    Path(file.path).write_text(json.dumps(before), "utf-8")
    install(file)
    Path(file.path).write_text(json.dumps(parse(file.path), indent=2), "utf-8")
    uninstall(file)
    assert read(file.path) == json.dumps(before, indent=2).encode()


def test_a_hook_that_the_user_put_beside_ours_stays(tmp_path: Path) -> None:
    """One entry of the list may hold several commands."""
    file = make_file(tmp_path)
    install(file)
    value = parse(file.path)
    hooks = value["hooks"]
    assert isinstance(hooks, dict)
    hooks["Begun"][0]["hooks"].append({"command": "mine"})
    Path(file.path).write_text(json.dumps(value), "utf-8")
    uninstall(file)
    assert parse(file.path) == {"hooks": {"Begun": [{"hooks": [{"command": "mine"}]}]}}


def test_a_file_and_a_folder_that_were_made_are_removed(tmp_path: Path) -> None:
    """What was not there before is not there afterwards."""
    file = make_file(tmp_path / "settings")
    install(file)
    assert stat.S_IMODE(os.stat(file.path).st_mode) == 0o600
    uninstall(file)
    assert os.listdir(tmp_path) == []
    uninstall(file)
    assert os.listdir(tmp_path) == []


def test_a_file_that_was_made_is_kept_once_the_user_has_written_in_it(tmp_path: Path) -> None:
    """It is theirs by then."""
    file = make_file(tmp_path / "settings")
    install(file)
    Path(file.path).write_text(json.dumps({"model": "large", **parse(file.path)}), "utf-8")
    uninstall(file)
    assert parse(file.path) == {"model": "large"}


def test_a_linked_file_stays_a_link_and_keeps_its_mode(tmp_path: Path) -> None:
    """Many keep such files in a repository of their own."""
    kept = tmp_path / "dotfiles" / "settings.json"
    kept.parent.mkdir()
    kept.write_text("{}\n", "utf-8")
    kept.chmod(0o644)
    file = make_file(tmp_path)
    os.symlink("dotfiles/settings.json", file.path)
    install(file)
    assert (os.readlink(file.path), stat.S_IMODE(kept.stat().st_mode)) == ("dotfiles/settings.json", 0o644)
    assert b"owned by agent-relay" in read(kept)
    uninstall(file)
    assert (os.readlink(file.path), read(kept)) == ("dotfiles/settings.json", b"{}\n")


@pytest.mark.parametrize(
    ("contents", "why"),
    [
        (b"", "it is not JSON"),
        (b'{"model": "lar', "it is not JSON"),
        (b"[1]", "it does not hold an object"),
        (b'model = "large"\n', "it is not JSON"),
        (b'{"a": 1,}', "it is not JSON"),
        (b'{"a": 1} /* b', "a comment in it has no end"),
        (b'{"hooks": [1]}', "`hooks` in it is not an object"),
        (b'{"hooks": {"Stopped": {"a": 1}}}', "`hooks.Stopped` in it is not a list"),
        (b'{"hooks": {}, "hooks": {}}', "the key 'hooks' is in it twice"),
        (b"{" + b"".join(b'"%d":1,' % n for n in range(70_000)) + b'"x":1,"x":1}', "'x' is in it twice"),
        (b'{"a": "\xff"}', "is not UTF-8 text"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"{}" + b" " * (1 << 20), "is larger than"),
    ],
)
def test_a_file_that_is_not_understood_is_left_alone(tmp_path: Path, contents: bytes, why: str) -> None:
    """One sentence says which file, and why."""
    file = make_file(tmp_path)
    Path(file.path).write_bytes(contents)
    with pytest.raises(RelayError) as caught:
        install(file)
    assert file.path in caught.value.sentence
    assert why in caught.value.sentence
    assert read(file.path) == contents
    assert os.listdir(tmp_path) == ["settings.json"]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("nowhere", path), os.mkdir])
def test_what_is_no_file_is_left_alone(tmp_path: Path, make: "object") -> None:
    """A pipe would block the reader, and a link that leads nowhere hides what its user meant."""
    assert callable(make)
    file = make_file(tmp_path)
    make(file.path)
    found = os.lstat(file.path)
    with pytest.raises(RelayError):
        install(file)
    assert os.lstat(file.path).st_ino == found.st_ino
    assert read_status(file, COMMAND).state == "unreadable"


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk."""
    file = make_file(tmp_path)
    before = json.dumps({"long": "x" * 2000}).encode()
    Path(file.path).write_bytes(before)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(RelayError, match=os.strerror(errno.EFBIG)):
            install(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (read(file.path), os.listdir(tmp_path)) == (before, ["settings.json"])


def test_a_change_that_was_shown_is_not_made_to_another_file(tmp_path: Path) -> None:
    """Somebody wrote while the user was reading."""
    file = make_file(tmp_path)
    Path(file.path).write_text("{}", "utf-8")
    shown = plan_install(file, COMMAND)
    Path(file.path).write_text('{"model": "large"}', "utf-8")
    with pytest.raises(RelayError, match="was changed meanwhile"):
        change_file(file.path, lambda: plan_install(file, COMMAND), shown=shown)
    assert read(file.path) == b'{"model": "large"}'


BOTH = """
import sys
from agent_relay.agents.hook_files import HookFile, change_file, plan_install
from agent_relay.domain.documents.agent_configuration import Hooks
file = HookFile("one", "user", sys.argv[1], Hooks(events=("Stopped", "Begun"), more={"timeout": 10}))
sys.stdin.read()
change_file(file.path, lambda: plan_install(file, sys.argv[2]))
"""


@pytest.mark.size("test")
def test_installs_at_once_add_one_hook(tmp_path: Path) -> None:
    """Two shells, or a script that is run twice."""
    file = make_file(tmp_path)
    Path(file.path).write_text("{}", "utf-8")
    running = [
        subprocess.Popen([sys.executable, "-c", BOTH, file.path, COMMAND], stdin=subprocess.PIPE)
        for _ in range(4)
    ]
    for one in running:
        assert one.stdin is not None
        one.stdin.close()
    assert [one.wait(120) for one in running] == [0, 0, 0, 0]
    assert read(file.path).count(b"owned by agent-relay") == 2
    uninstall(file)
    assert read(file.path) == b"{}"


def test_hooks_of_an_installation_that_is_gone_are_told_and_renewed(tmp_path: Path) -> None:
    """It was moved or upgraded; to install again is the remedy."""
    file = make_file(tmp_path)
    Path(file.path).write_text('{"hooks": {"Stopped": [{"hooks": []}]}}', "utf-8")
    gone = build_unmanaged_command("/state/hooks/one", "/run/relay", "", hook=str(tmp_path / "hook.py"))
    install(file, gone)
    found = read_status(file, COMMAND)
    assert (found.state, found.program) == ("gone", str(tmp_path / "hook.py"))
    (tmp_path / "hook.py").touch()
    assert read_status(file, COMMAND).state == "other"
    install(file)
    assert read_status(file, COMMAND).state == "installed"
    assert read(file.path).count(b"owned by agent-relay") == 2
    uninstall(file)
    assert read(file.path) == b'{"hooks": {"Stopped": [{"hooks": []}]}}'
