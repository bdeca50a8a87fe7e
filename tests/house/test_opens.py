"""What others wrote is opened in one place, which neither waits nor reads without an end."""

import ast
import functools
from collections.abc import Iterator

from tests.house import tree

HOME = "agent_relay/system/disk/files.py"
OPENS = {
    ("", "open"), ("os", "open"), ("io", "open"), ("gzip", "open"), ("gzip", "decompress"),
    ("tomllib", "load"), ("sqlite3", "connect"), ("shutil", "copy"), ("shutil", "copy2"),
    ("shutil", "copyfile"),
}  # fmt: skip
READERS = {"read_text", "read_bytes"}
NO_READING = ("O_EXCL", "O_DIRECTORY", "O_PATH", "O_WRONLY", "os.devnull")
FROM_PROC = "f'/proc/"
MADE = "makes or goes on with a file of ours, and reads nothing"
CHECKED = "opened for reading and writing, which never waits, and looked at before it is read"
LOOKED_AT = "opened without waiting or following links, and looked at before it is read"
LOCK = "a lock of ours: opened for reading and writing, which never waits, and never read"
NOTE = "a note of ours: appended to without waiting, and never read here"
OWN = "reads what we made a moment ago, or came with us"
SYSTEM = "a file of the machine's own, which only its administrator writes"
DATABASE = "after `check_database`: SQLite opens paths itself"
ALLOWED = {
    "agent_relay/daemon/_log.py:_open": MADE,
    "agent_relay/faces/cli/demo.py:create_project": MADE,
    "agent_relay/faces/cli/demo.py:prepare_home": MADE,
    "agent_relay/faces/watch/_web.py:_build_file": OWN,
    "agent_relay/hook.py:_open": CHECKED,
    "agent_relay/store/checkpoints.py:add_checkpoint": CHECKED,
    "agent_relay/store/edit_buffer.py:_write": MADE,
    "agent_relay/system/git/worktree.py:_copy_all": MADE,
    "agent_relay/system/git/worktree.py:_put": MADE,
    "agent_relay/sources/recording.py:_read_database": DATABASE,
    "agent_relay/system/disk/file_transaction.py:_link": MADE,
    "agent_relay/system/disk/file_transaction.py:_stage": MADE,
    "agent_relay/system/disk/file_transaction.py:describe_file": LOOKED_AT,
    "agent_relay/system/disk/locks.py:open_alone": CHECKED,
    "agent_relay/system/headless.py:open_stream": MADE,
    "agent_relay/terminal/holder/child.py:__init__": OWN,
    "agent_relay/terminal/holder/child.py:_note_left": NOTE,
    "agent_relay/terminal/holder/child.py:store_exit": MADE,
    "agent_relay/terminal/holder/_folder_keeper.py:_restore": LOCK,
    "agent_relay/system/disk/locks.py:open_lock": LOCK,
    "agent_relay/sources/native_fork.py:_copy_beside": MADE,
    "agent_relay/sources/native_fork.py:_copy_database": DATABASE,
    "agent_relay/store/tree_owner.py:_read": SYSTEM,
    "agent_relay/sources/transcript_files.py:_connect": DATABASE,
    "agent_relay/usage/index.py:_connect": DATABASE,
}


def test_what_others_wrote_is_opened_in_one_place() -> None:
    """A FIFO, a device or a file without an end, where a transcript is expected, stops whoever opens it."""
    found = {
        place: ast.unparse(call)
        for name in tree.python_files("agent_relay")
        if name != HOME
        for place, call in _list_opens(name)
        if place not in ALLOWED
    }
    assert found == {}


def test_every_exception_is_still_needed() -> None:
    """A reason for what is no longer there is read by somebody who then looks for it."""
    used = {place for name in tree.python_files("agent_relay") for place, _ in _list_opens(name)}
    assert set(ALLOWED) - used == set()


@functools.cache
def _list_opens(name: str) -> tuple[tuple[str, ast.Call], ...]:
    """Every call that opens a path to read what is there, with `file:function`."""
    return tuple(_iterate_opens(name))


def _iterate_opens(name: str) -> Iterator[tuple[str, ast.Call]]:
    for function, call in _iterate_calls(tree.parse(name), ""):
        if _is_open(call) and not any(word in ast.unparse(call) for word in (*NO_READING, FROM_PROC)):
            yield f"{name}:{function}", call


def _iterate_calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield function, child
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _iterate_calls(child, child.name if is_function else function)


def _is_open(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id=name):
            return ("", name) in OPENS
        case ast.Attribute(value=ast.Name(id=module), attr=name) if (module, name) in OPENS:
            return True
        case ast.Attribute(attr=name):
            return name in READERS
        case _:
            return False
