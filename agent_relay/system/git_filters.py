"""Keeps git from running filters that a repository's own settings name, where relay looks unasked.

A clone cannot bring such settings, but an archive that was unpacked can, and relay reads a tree before
anybody has said that they trust it. What the user's own settings name (git-lfs, for one) runs as ever:
without it contents are compared with the wrong thing.
"""

import os
import re
from collections.abc import Iterable, Sequence

from agent_relay.system.git_program import TIMEOUT_S, Answer, ask_git

_SETTINGS = (
    "config", "--show-scope", "--null", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$",
)  # fmt: skip
_USERS = (b"system", b"global", b"command")
_INDEX = ("ls-files", "--stage", "-z")
_SUBMODULE = re.compile(rb"(?:\A|\0)160000 [0-9a-f]+ \d\t([^\0]+)")
QUESTIONS = (_SETTINGS, _INDEX)
_MOST_SUBMODULES = 64
_AT_ONCE = 8
_MOST_SETTINGS, _MOST_BYTES = 400, 64 << 10
"""Of one repository: all of them must fit into the variables that a process may be started with."""
_FOUND, _NONE = 0, 1
"""How `git config --get-regexp` ends that read everything."""
_OFF = {"required": "false"}


class UnknownFiltersError(Exception):
    """Which filters a repository's settings name is not known whole, so git cannot be kept from them."""


def build_filter_settings(
    root: str, *, limit_s: float = TIMEOUT_S, first: Sequence[Answer] = ()
) -> tuple[dict[str, str], bool]:
    """Return variables by which git in `root` and below has the user's own filters, and whether they do.

    `first` are the answers to `QUESTIONS` in `root` where they are known already.
    They do not where there are more submodules than can be asked, each of which has settings of its own: git
    must be kept out of them then. The same holds for one whose settings cannot be read whole. Raises
    UnknownFiltersError where `root` is such a one, GitMissingError.
    """
    settings: list[tuple[str, str, str]] = []
    waiting, asked, is_whole = [root], 0, True
    while waiting:
        if asked > _MOST_SUBMODULES:
            is_whole = False
            break
        batch, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
        asked += len(batch)
        commands = [("-C", one, *command) for one in batch for command in QUESTIONS]
        answers = first if first and asked == 1 else ask_git(root, *commands, timeout_s=limit_s)
        for one, listed, index in zip(batch, answers[::2], answers[1::2], strict=True):
            try:
                settings += _parse(listed)
            except UnknownFiltersError:
                if one == root:
                    raise
                is_whole = False
            is_whole = is_whole and index.ok
            waiting += _find_submodules(one, index)
    return _render(_choose(settings)), is_whole


def _parse(answer: Answer) -> list[tuple[str, str, str]]:
    """Return whose it is, key and value of every setting, in the order in which git reads them.

    Raise UnknownFiltersError where more may stand behind, or it is more than git can be told to leave alone.
    """
    if answer.timed_out:
        raise UnknownFiltersError("it did not answer in time")
    fields = bytes(answer.out).split(b"\0")[:-1]
    is_long = len(fields) > 2 * _MOST_SETTINGS or len(answer.out) > _MOST_BYTES
    if answer.cut or is_long:
        raise UnknownFiltersError("its settings name too many filters to be left alone")
    if answer.code not in (_FOUND, _NONE):
        raise UnknownFiltersError("its settings cannot be read")
    found = []
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        key, mark, value = setting.partition(b"\n")
        owner = "user" if scope in _USERS else "repository"
        found.append((owner, os.fsdecode(key), os.fsdecode(value) if mark else "true"))
    return found


def _choose(settings: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return by key what every filter a repository names is to be: what the user says of it, or nothing."""
    users: dict[str, str] = {}
    named: dict[str, None] = {}
    for owner, key, value in settings:
        if owner == "user":
            users[key] = value
        else:
            named[key] = None
    return {key: users.get(key, _OFF.get(key.rpartition(".")[2], "")) for key in named}


def _render(settings: dict[str, str]) -> dict[str, str]:
    """Return them as variables: they outrank every file, and take keys that no command line can name."""
    if not settings:
        return {}
    before = os.environ.get("GIT_CONFIG_COUNT", "")
    count = int(before) if before.isdecimal() else 0
    found = {"GIT_CONFIG_COUNT": str(count + len(settings))}
    for number, (key, value) in enumerate(settings.items(), count):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def _find_submodules(root: str, index: Answer) -> list[str]:
    """Return the folders of those that are there."""
    paths = (os.path.join(root, os.fsdecode(path)) for path in _SUBMODULE.findall(bytes(index.out)))
    return [path for path in dict.fromkeys(paths) if os.path.lexists(os.path.join(path, ".git"))]
