"""Run the git program without side effects: no locks, hooks, pagers, prompts, fetches or foreign filters.

Every git of ours is started here, without file-system monitors too. A repository's own settings may name
filters, and relay reads repositories before the user has said that they trust them: a clone cannot bring such
settings, but an archive that was unpacked can. What the user's own settings name (git-lfs, for one) runs as
usual: without it the wrong contents are compared.
"""

import contextlib
import errno
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from agent_relay.system.programs import Ending, ProgramAnswer, ask_programs
from agent_relay.system.spawn import keep_absolute

TIMEOUT_S = 10.0
LIMIT_BYTES = 16 << 20
_EXHAUSTED = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)

# Command-line configuration outranks every file, and git hands it on to submodules.
_OVERRIDES = (
    "safe.bareRepository=explicit",  # else files of a clone that look like a repository are taken for one
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.quotePath=false",
    "diff.external=",
    "diff.autoRefreshIndex=false",  # else `git diff` rewrites the index, optional locks or not
    "diff.ignoreSubmodules=none",
    "submodule.recurse=false",
    "maintenance.auto=false",
    "gc.auto=0",
)
# Variables a git hook or a wrapping tool leaves behind would point us at another repository.
_KEPT = ("GIT_CONFIG", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH")
_FORCED = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}


NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class GitMissingError(Exception):
    """There is no git program to run, or no such folder to run it in.

    With `is_exhausted` the machine cannot start any program now, and nothing is known about git.
    """

    def __init__(self, why: str, *, is_exhausted: bool = False) -> None:
        super().__init__(why)
        self.is_exhausted = is_exhausted


def ask_git(
    cwd: str,
    *commands: Sequence[str],
    limit_bytes: int = LIMIT_BYTES,
    timeout_s: float = TIMEOUT_S,
    environ: Mapping[str, str] = NO_VARIABLES,
) -> list[ProgramAnswer]:
    """Run `commands` at the same time in `cwd` and return their answers; a failing command has one too.

    `environ` is added to git's environment: another index, another store of objects. Raise GitMissingError if
    git cannot be started.
    """
    try:
        # Of an empty folder git would take this process's own.
        os.stat(os.path.join(cwd, ".") if cwd else "")
    except OSError as problem:
        raise GitMissingError(problem.strerror or "it cannot be entered") from problem
    flags = [part for pair in _OVERRIDES for part in ("-c", pair)]
    asked = {
        f"{number}": ["git", "-C", cwd, "--no-pager", "--literal-pathspecs", *flags, *command]
        for number, command in enumerate(commands)
    }
    answers: dict[str, ProgramAnswer] = {}
    running = ask_programs(asked, limit_s=timeout_s, limit_bytes=limit_bytes, environ=_build_environ(environ))
    with contextlib.closing(running):
        for key, answer in running:
            if answer.ending is Ending.NOT_STARTED:
                raise GitMissingError(answer.why, is_exhausted=answer.errno in _EXHAUSTED)
            answers[key] = answer
    return [answers[key] for key in asked]


def _build_environ(more: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT)
    }
    kept["PATH"] = keep_absolute(os.environ.get("PATH", os.defpath))
    return kept | _FORCED | dict(more)


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
"""Limits for one repository: all settings must fit into the variables that a process may be started with."""
_FOUND, _NONE = 0, 1
"""The exit statuses of `git config --get-regexp` if it read everything."""
_OFF = {"required": "false"}


class UnknownFiltersError(Exception):
    """The filters that a repository's settings name are not all known, so git cannot be kept from them."""


def build_filter_settings(
    root: str, *, limit_s: float = TIMEOUT_S, first: Sequence[ProgramAnswer] = ()
) -> tuple[dict[str, str], bool]:
    """Return variables that leave git in `root` and below only the user's filters, and if they suffice.

    `first` are the answers to `QUESTIONS` in `root` if they are known already. The variables do not suffice
    if there are more submodules than can be asked, each of which has settings of its own, or if the settings
    of one cannot be read completely: git must be kept out of submodules then. Raise UnknownFiltersError if
    the settings of `root` itself cannot be read completely, and GitMissingError.
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


def _parse(answer: ProgramAnswer) -> list[tuple[str, str, str]]:
    """Return owner, key and value of every setting, in the order in which git reads them.

    Raise UnknownFiltersError if there may be more of them, or more than can be overridden.
    """
    if answer.ending is Ending.LATE:
        raise UnknownFiltersError("it did not answer in time")
    fields = answer.output.split(b"\0")[:-1]
    is_long = len(fields) > 2 * _MOST_SETTINGS or len(answer.output) > _MOST_BYTES
    if answer.is_cut or is_long:
        raise UnknownFiltersError("its settings name too many filters to be left alone")
    if answer.status not in (_FOUND, _NONE):
        raise UnknownFiltersError("its settings cannot be read")
    found = []
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        key, mark, value = setting.partition(b"\n")
        owner = "user" if scope in _USERS else "repository"
        found.append((owner, os.fsdecode(key), os.fsdecode(value) if mark else "true"))
    return found


def _choose(settings: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return the value for each key of a filter that a repository names: the user's own, or none."""
    users: dict[str, str] = {}
    named: dict[str, None] = {}
    for owner, key, value in settings:
        if owner == "user":
            users[key] = value
        else:
            named[key] = None
    return {key: users.get(key, _OFF.get(key.rpartition(".")[2], "")) for key in named}


def _render(settings: dict[str, str]) -> dict[str, str]:
    """Return them as variables, which outrank every file and take keys that no command line can name."""
    if not settings:
        return {}
    before = os.environ.get("GIT_CONFIG_COUNT", "")
    count = int(before) if before.isdecimal() else 0
    found = {"GIT_CONFIG_COUNT": str(count + len(settings))}
    for number, (key, value) in enumerate(settings.items(), count):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def _find_submodules(root: str, index: ProgramAnswer) -> list[str]:
    """Return the folders of the submodules that are checked out."""
    paths = (os.path.join(root, os.fsdecode(path)) for path in _SUBMODULE.findall(index.output))
    return [path for path in dict.fromkeys(paths) if os.path.lexists(os.path.join(path, ".git"))]
