"""The folders relay stores its files in, refused if other users could reach them; and the working folder.

Hot commands load this: it imports nothing heavy.
"""

import os
import stat
import sys

from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.names import HOME_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


PRIVATE_MODE = 0o700
ELSEWHERE = "Set AGENT_RELAY_HOME to a folder you can write to."
"""The hint if a folder of ours cannot be made or written to."""
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Folders:
    """The paths of the user's folders; none is created here. What is in `cache` may be deleted at any time.

    A plain class: hot commands import this module and must not pay for dataclasses.
    """

    __slots__ = ("cache", "config", "runtime", "state")

    def __init__(self, runtime: str, state: str, config: str, cache: str = "") -> None:
        self.runtime = runtime
        self.state = state
        self.config = config
        self.cache = cache or f"{state}/cache"

    @property
    def daemon_socket(self) -> str:
        """The daemon's socket."""
        return f"{self.runtime}/daemon.sock"

    @property
    def daemon_lock(self) -> str:
        """Locked by the daemon for as long as it lives."""
        return f"{self.runtime}/daemon.lock"

    @property
    def mcp_socket(self) -> str:
        """The socket of the MCP server, which runs only while an agent uses it."""
        return f"{self.runtime}/mcp.sock"

    @property
    def mcp_lock(self) -> str:
        """Locked by the MCP server for as long as it lives."""
        return f"{self.runtime}/mcp.lock"

    @property
    def start_lock(self) -> str:
        """Locked by a daemon from before it takes `daemon_lock` until it listens."""
        return f"{self.runtime}/start.lock"

    @property
    def stopped_mark(self) -> str:
        """Exists from a daemon's end on purpose until the next one starts; a killed daemon leaves none."""
        return f"{self.runtime}/stopped"

    @property
    def legs(self) -> str:
        """Holds one folder per leg."""
        return f"{self.runtime}/legs"

    @property
    def proxy_lock(self) -> str:
        """Locked by the proxy for as long as it lives; holds its process id and port."""
        return f"{self.runtime}/proxy.lock"

    @property
    def ledger(self) -> str:
        """The file of the agents that rest, and until when."""
        return f"{self.state}/ledger.json"

    @property
    def usage_windows(self) -> str:
        """The file of the usage windows that agents last reported."""
        return f"{self.state}/usage-windows.json"

    @property
    def agent_versions(self) -> str:
        """The versions the agents' programs reported, and the newer ones the user has been notified of."""
        return f"{self.state}/agent-versions.json"

    @property
    def sessions(self) -> str:
        """The index of sessions over repositories, one file per session."""
        return f"{self.state}/sessions"

    @property
    def races(self) -> str:
        """Holds one folder per race: its journal, its worktrees, its store of objects."""
        return f"{self.state}/races"

    @property
    def hooks(self) -> str:
        """Holds one folder per agent, with what it reports by hooks where relay did not start it."""
        return f"{self.state}/hooks"

    @property
    def daemon_log(self) -> str:
        """The daemon's log; `.1` behind the name is the one before it."""
        return f"{self.state}/daemon.log"

    @property
    def crashes(self) -> str:
        """Holds crash reports."""
        return f"{self.state}/crashes"

    @property
    def usage_index(self) -> str:
        """The index of what has been read of the agents' usage so far."""
        return f"{self.cache}/usage.db"


def get_folders(environ: "Mapping[str, str] | None" = None) -> Folders:
    """Return the user's folders: under `AGENT_RELAY_HOME` if it is set, else in the platform's places.

    On Linux they are computed here, as platformdirs computes them (a test compares), because importing it
    costs more than a whole hot command may. Raise ConfigurationError if `AGENT_RELAY_HOME` is not an absolute
    path, or if another user's folder is in the place.
    """
    environ = os.environ if environ is None else environ
    home = environ.get(HOME_VARIABLE, "")
    if home:
        if not os.path.isabs(home):
            # The daemon works in another folder than whoever starts it.
            raise ConfigurationError(
                f"AGENT_RELAY_HOME must be an absolute path, not {home!r}", hint="Begin it with a slash."
            )
        home = os.path.normpath(home)
        return Folders(f"{home}/run", f"{home}/state", f"{home}/config", f"{home}/cache")
    if not sys.platform.startswith("linux"):
        return _platform_folders()
    return Folders(
        f"{_runtime_root(environ)}/agent-relay",
        f"{_user_root(environ, 'XDG_STATE_HOME', '.local/state')}/agent-relay",
        f"{_user_root(environ, 'XDG_CONFIG_HOME', '.config')}/agent-relay",
        f"{_user_root(environ, 'XDG_CACHE_HOME', '.cache')}/agent-relay",
    )


def ensure_private(path: str) -> str:
    """Make sure that `path` is a folder only this user can read or change, mode 0700; create it if missing.

    Return `path`. Raise ConfigurationError if it cannot be made, is a symlink or no folder, is another
    user's, may be written by group or others, or lies where others could replace it.
    """
    parent = os.path.dirname(path)
    try:
        os.makedirs(parent, mode=PRIVATE_MODE, exist_ok=True)
        check_parent(parent)
        try:
            os.mkdir(path, PRIVATE_MODE)
        except FileExistsError:
            check_private(path)
            _close_to_others(path)
    except OSError as error:
        raise ConfigurationError(
            f"cannot make the folder {path}: {error.strerror}", hint=ELSEWHERE
        ) from error
    return path


def check_private(path: str) -> None:
    """Check that `path` is a folder of this user that nobody else may write to.

    Raise ConfigurationError if it is not, FileNotFoundError if it does not exist.
    """
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        raise ConfigurationError(f"{path} is a symlink, so what it points at could change", hint="Remove it.")
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigurationError(f"{path} is not a folder", hint="Move it away.")
    if found.st_uid != os.geteuid():
        raise ConfigurationError(
            f"{path} belongs to user {found.st_uid}, not to you",
            hint="Set XDG_RUNTIME_DIR or AGENT_RELAY_HOME to a folder of your own.",
        )
    if found.st_mode & _OTHERS_MAY_WRITE:
        raise ConfigurationError(f"others may write to {path}", hint=f"Run: chmod go-w {path}")


def _close_to_others(path: str) -> None:
    """Set mode 0700 on a folder of ours that others may read: one made by hand or under an older umask."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_mode & 0o077:
            os.fchmod(handle, PRIVATE_MODE)
    finally:
        os.close(handle)


def check_parent(path: str) -> None:
    """Check that nobody else could replace what is in the folder. Raise ConfigurationError, OSError.

    Group write is allowed: it is the custom where every user has a group of their own.
    """
    found = os.stat(path)
    if found.st_uid not in (0, os.geteuid()):
        raise ConfigurationError(f"{path} belongs to user {found.st_uid}, who could replace what is in it")
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        raise ConfigurationError(f"anybody may replace what is in {path}", hint=f"Run: chmod o-w {path}")


def _runtime_root(environ: "Mapping[str, str]") -> str:
    named = environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(named):
        named = os.path.normpath(named)
        if _fits_runtime(named, missing_ok=True) and _parents_are_safe(named):
            return named
    usual = f"/run/user/{os.geteuid()}"
    if _fits_runtime(usual, missing_ok=False):
        return usual
    last = os.path.join(_temporary_root(environ), f"runtime-{os.geteuid()}")
    if os.path.lexists(last):
        found = os.lstat(last)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise ConfigurationError(
                f"{last} is not a folder of yours", hint="Set XDG_RUNTIME_DIR to a folder of your own."
            )
    return last


def _fits_runtime(path: str, *, missing_ok: bool) -> bool:
    """Return whether `path` meets XDG's conditions: a real folder, owned by the user, mode exactly 0700."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return missing_ok
    except OSError:
        return False
    private = stat.S_IMODE(found.st_mode) & 0o777 == PRIVATE_MODE
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and private


def _parents_are_safe(path: str) -> bool:
    """Return whether no other user could replace a folder on the way to `path`; missing ones will be made."""
    shared = False
    parts = path.split("/")[1:-1]
    for parent in ["/", *("/" + "/".join(parts[: count + 1]) for count in range(len(parts)))]:
        try:
            if shared and os.lstat(parent).st_uid not in (0, os.geteuid()):
                return False
            mode = os.stat(parent).st_mode
        except OSError:
            return True
        shared = bool(mode & stat.S_IWOTH)
        if shared and not mode & stat.S_ISVTX:
            return False
    return True


def _temporary_root(environ: "Mapping[str, str]") -> str:
    """Return the first usable temporary folder in the order of Python's tempfile, which is slow to import."""
    named = [environ[name] for name in ("TMPDIR", "TEMP", "TMP") if environ.get(name)]
    for path in [*named, "/tmp", "/var/tmp", "/usr/tmp"]:  # noqa: S108 - what stands there is checked by owner
        if os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK):
            return os.path.abspath(path)
    return os.getcwd()


def _user_root(environ: "Mapping[str, str]", name: str, below_home: str) -> str:
    named = environ.get(name, "")
    if os.path.isabs(named):
        return named.rstrip("/") or "/"
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        import pwd

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            raise ConfigurationError(
                "your home folder is not known", hint="Set HOME or AGENT_RELAY_HOME."
            ) from None
    return f"{home.rstrip('/')}/{below_home}"


def _platform_folders() -> Folders:
    import platformdirs

    return Folders(
        platformdirs.user_runtime_dir("agent-relay", appauthor=False),
        platformdirs.user_state_dir("agent-relay", appauthor=False),
        platformdirs.user_config_dir("agent-relay", appauthor=False),
        platformdirs.user_cache_dir("agent-relay", appauthor=False),
    )


def get_cwd() -> str:
    """Return the absolute path of the working folder. Raise RelayError if it is deleted or not accessible."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise RelayError(
            "the folder you are in has been deleted, so nobody can tell which project is meant",
            hint="Go to one that is there: cd FOLDER",
        ) from None
    except OSError as error:
        raise RelayError(
            f"the folder you are in cannot be found: {error.strerror}", hint="cd FOLDER"
        ) from error
