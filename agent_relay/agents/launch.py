"""Make a leg ready to start: its values, the files its agent reads, its arguments and environment."""

import contextlib
import json
import os
import re
import secrets
import shlex
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from agent_relay.agents.adapters import LoadedAdapter, find_program
from agent_relay.agents.base_urls import plan_proxied_launch, restore_base_urls
from agent_relay.agents.source_paths import LegPlace, expand_text
from agent_relay.agents.user_choices import chooses_session
from agent_relay.domain.documents.adapter import Adapter, FileTemplate, Launch, SourceSpec
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.names import HOME_VARIABLE, LEG_VARIABLE
from agent_relay.domain.session import Leg
from agent_relay.domain.values import Confidential, replace
from agent_relay.store.context_notes import NOTE_FILE
from agent_relay.store.proxied_legs import write_proxied_leg
from agent_relay.system.disk.files import read_bounded, write_atomic

if TYPE_CHECKING:
    from jinja2 import Template

OWN_PREFIX = "AGENT_RELAY_"
STREAM_FILE = "stream.jsonl"
LEG_TOKEN = "leg_token"  # noqa: S105 - its name among a leg's values
"""The value by which a leg's agent proves its identity; no argument may contain it."""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class LaunchPlan(msgspec.Struct, frozen=True):
    """Describe how to start a leg's process; `argv` begins with the program's absolute path."""

    argv: tuple[str, ...]
    env: dict[str, str]


def build_launch(
    adapter: Adapter,
    program: str,
    *,
    values: Mapping[str, str],
    environ: Mapping[str, str],
    withheld: Collection[str] = (),
    resumes: bool = False,
    extra: Sequence[str] = (),
) -> LaunchPlan:
    """Build the plan of one leg.

    `values` fill the placeholders; a list of arguments whose placeholder has no value is left out whole.
    `environ` is the user's; `withheld` are the other agents' key variables, of which this agent's own
    stay. `extra` are the user's arguments, last. Raises ConfigurationError for an unknown placeholder.
    """
    launch = adapter.launch
    begin = launch.resume_args if resumes else launch.fresh_args
    argv = [program]
    effort = " ".join(launch.effort_words[:1]).split()
    for words in (begin, launch.tool_args, launch.args, launch.model_args, effort, launch.packet_args):
        argv += _fill_all(words, values)
    argv += extra
    return LaunchPlan(tuple(argv), _build_env(adapter, launch, values, environ, set(withheld)))


def build_headless(adapter: Adapter) -> Adapter | None:
    """Return the adapter for a headless leg: its launch, sources and quitting; `None` if it has none.

    Relaunching is off: a program that asks to be started again would get its prompt twice, so that ends its
    turn.
    """
    spec = adapter.headless
    if spec is None:
        return None
    launch = replace(
        adapter.launch,
        args=spec.args,
        fresh_args=spec.fresh_args,
        resume_args=spec.resume_args,
        env={**adapter.launch.env, **spec.env},
        files=spec.files or adapter.launch.files,
        needs_port=False,
        relaunch_status=0,
    )
    stream = SourceSpec(
        role="stream", framing="jsonl", path=f"{{leg_folder}}/{STREAM_FILE}", names=spec.names
    )
    kept = (source for source in adapter.sources if source.role in spec.keeps)
    sources = (stream, *kept, *spec.sources)
    return replace(adapter, launch=launch, sources=sources, quit=spec.quit)


def _build_env(
    adapter: Adapter,
    launch: Launch,
    values: Mapping[str, str],
    environ: Mapping[str, str],
    withheld: set[str],
) -> dict[str, str]:
    dropped = (withheld - set(adapter.keys)) | set(launch.unset)
    env = {
        name: value
        for name, value in environ.items()
        if name not in dropped and not name.startswith(OWN_PREFIX)
    }
    for name, pattern in launch.env.items():
        filled = _fill_all((pattern,), values)
        if filled:
            env[name] = filled[0]
    for name, pattern in launch.tool_env.items():
        filled = _fill_all((pattern,), values)
        if filled:
            env[name] = _merge_json(environ.get(name, ""), filled[0])
    return env


def _merge_json(user: str, ours: str) -> str:
    """Return the user's JSON object with ours in it; what is no object, or has another form, stays as it is.

    What the user says of the same thing counts.
    """
    if not user.strip():
        return ours
    try:
        return json.dumps(_merge(json.loads(ours), json.loads(user)))
    except (ValueError, TypeError, RecursionError):
        return user


def _merge(ours: object, theirs: object) -> object:
    """Return `theirs` with what only `ours` has; raise TypeError if one of them is no object."""
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        raise TypeError
    merged = dict(theirs)
    for name, value in ours.items():
        merged[name] = value if name not in theirs else _merge(value, theirs[name])
    return merged


def _fill_all(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    filled = []
    for word in words:
        for name in _PLACEHOLDER.findall(word):
            if name not in KNOWN_VALUES:
                raise ConfigurationError(f"an adapter's launch names an unknown value {{{name}}}")
            if not values.get(name):
                return []
        filled.append(_PLACEHOLDER.sub(lambda match: values[match[1]], word))
    return filled


MCP_WORDS = "mcp_words"
_MCP_VALUES = ("mcp_program", "mcp_args", MCP_WORDS)
KNOWN_VALUES = frozenset(
    {"native_id", "model", "effort", "leg_folder", "packet", "packet_folder", "port", "password"}
    | {"cwd", "home", *_MCP_VALUES}
)
"""The placeholders an adapter may use in arguments and environment."""


_TEMPLATE_LIMIT_BYTES = 1 << 20
_USER_FILE_LIMIT_BYTES = 4 << 20

HOOK_PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "hook.py")

PIPE_PATH = os.path.join(os.path.dirname(HOOK_PATH), "faces", "mcp", "pipe.py")

# `$0` is Python, `$1` hook.py, `$2` its first argument. A hook's status 2 blocks the prompt, and it is
# Python's own for a script that is gone and a shell's that cannot start another process: the trap has the
# last word. What an agent reads of its hooks becomes part of its conversation, so that nothing is said, but
# behind `tells` the note that relay left in the leg's folder, once. A status line is the user's own command
# (behind `--`) where ours cannot be run.
_GUARD = f"""\
if [ "$2" = status-line ]; then
  [ -x "$0" ] && [ -r "$1" ] && exec "$0" -I -S "$@"
  shift 3
  [ "$1" = -- ] && shift && exec "$@"
  exit 0
fi
trap "exit 0" 0
exec 2>/dev/null
"$0" -I -S "$@" >&2
n="$3/{NOTE_FILE}"
[ "$4" = tells ] && [ -f "$n" ] && mv "$n" "$n.$$" && cat "$n.$$" && rm "$n.$$"
exit 0"""


class LegStart(Confidential, frozen=True):
    """Everything a leg is started from, beyond its adapter.

    `environ` is the user's whole environment; `packet` the absolute path of the packet's text, empty
    for none. `may_continue` is whether the agent may go on by itself when a limit of its own is over.
    `tool_folder` is where the pipe of its tools finds the daemon; empty if it gets none.
    `proxy_port` is where the proxy listens that its requests pass through, 0 for none.
    """

    leg_folder: str
    cwd: str
    environ: Mapping[str, str]
    packet: str = ""
    model: str = ""
    args: Sequence[str] = ()
    may_continue: bool = True
    tool_folder: str = ""
    proxy_port: int = 0


def build_values(loaded: LoadedAdapter, leg: Leg, start: LegStart) -> dict[str, str]:
    """Return the values of the adapter's placeholders for this leg; a fresh port and password if needed."""
    values = {
        "native_id": "" if chooses_session(loaded.adapter.launch, start.args) else leg.native_id,
        "leg_folder": start.leg_folder,
        "packet": start.packet,
        "packet_folder": os.path.dirname(start.packet),
        "model": start.model,
        "effort": leg.effort,
        "cwd": start.cwd,
        "home": start.environ.get("HOME", ""),
        LEG_TOKEN: secrets.token_urlsafe(24),
        **(build_tool_values(start.tool_folder) if start.tool_folder else {}),
    }
    if loaded.adapter.launch.needs_port:
        values |= {"port": str(_find_free_port()), "password": secrets.token_urlsafe(24)}
    return values


def build_tool_values(
    folder: str, *, python: str = sys.executable, pipe: str = "", more: Sequence[str] = ()
) -> dict[str, str]:
    """Return the values by which an adapter names the pipe of relay's tools; `folder` is the daemon's.

    They are JSON, and strings of TOML as well. `more` are further arguments of the pipe.
    """
    words = [python, "-I", "-S", pipe or PIPE_PATH, folder, *more]
    forms = (words[0], words[1:], words)
    return {
        name: json.dumps(form).replace("\x7f", "\\u007f")
        for name, form in zip(_MCP_VALUES, forms, strict=True)
    }


def get_program(loaded: LoadedAdapter, environ: Mapping[str, str]) -> str:
    """Return the absolute path of the agent's program; raise RelayError if it is not installed."""
    program = find_program(loaded, environ)
    if program is None:
        name = loaded.adapter.launch.program
        raise RelayError(
            f"{loaded.adapter.title} is not installed: {name} is not on your PATH",
            hint="See what is missing: agent-relay doctor",
        )
    return program


def prepare_launch(
    loaded: LoadedAdapter,
    leg: Leg,
    start: LegStart,
    *,
    values: Mapping[str, str],
    withheld: Collection[str],
) -> LaunchPlan:
    """Write the leg's files into its folder and return its plan.

    Raises RelayError if the agent is not installed, a template cannot be read or a file not written.
    """
    environ, spec = restore_base_urls(start.environ), loaded.adapter.proxy
    proxied = None
    if spec is not None and start.proxy_port:
        proxied = plan_proxied_launch(spec, values, environ, port=start.proxy_port, leg_id=leg.id)
    plan = build_launch(
        loaded.adapter,
        get_program(loaded, start.environ),
        values=values,
        environ=environ,
        withheld=withheld,
        resumes=leg.resumes,
        extra=(*(proxied.args if proxied is not None else ()), *start.args),
    )
    if proxied is not None:
        plan = replace(plan, env=proxied.change(plan.env))
        write_proxied_leg(start.leg_folder, proxied.leg)
    place = LegPlace(leg.id, leg.starting_at, values, plan.env)
    for file in loaded.adapter.launch.files:
        text = _render_file(loaded, file, values, place, may_continue=start.may_continue)
        write_atomic(os.path.join(start.leg_folder, file.name), text.encode(), durable=False)
    return plan


def prepare_templates(loaded: LoadedAdapter) -> None:
    """Compile the templates of the files that the agent's start needs. A start reports what is wrong there.

    The engine takes longer to load than a start may wait: call it in a thread while something else is waited
    for.
    """
    for file in loaded.adapter.launch.files:
        with contextlib.suppress(RelayError, OSError, ImportError):
            _read_template(loaded, file)


def _read_template(loaded: LoadedAdapter, file: FileTemplate) -> "Template":
    """Return a file's template. Raise ConfigurationError if it is missing or invalid."""
    from jinja2 import TemplateError

    path = os.path.join(loaded.folder, file.template)
    try:
        return _compile(read_bounded(path, limit_bytes=_TEMPLATE_LIMIT_BYTES).decode())
    except FileNotFoundError:
        raise ConfigurationError(f"the adapter's template {path} is missing") from None
    except (TemplateError, UnicodeDecodeError) as error:
        raise _build_template_error(path, error) from error


def _build_template_error(path: str, error: Exception) -> ConfigurationError:
    return ConfigurationError(f"the adapter's template {path} cannot be used: {error}")


def _render_file(
    loaded: LoadedAdapter,
    file: FileTemplate,
    values: Mapping[str, str],
    place: LegPlace,
    *,
    may_continue: bool,
) -> str:
    # Only agents that read files of ours need it, and it takes longer to load than an agent's start may wait.
    from jinja2 import TemplateError

    read = {name: _read_object(form, place) for name, form in file.reads.items()}
    template = _read_template(loaded, file)
    own = {"hook_command": build_hook_command(), "may_continue": may_continue}
    try:
        return template.render(**values, **read, **own)
    except TemplateError as error:
        raise _build_template_error(os.path.join(loaded.folder, file.template), error) from error


@lru_cache(maxsize=32)
def _compile(source: str) -> "Template":
    """Return the template in `source`; raise TemplateError if it is invalid."""
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(autoescape=False)
    environment.filters["shell"] = shlex.quote
    return environment.from_string(source)


def _read_object(form: str, place: LegPlace) -> dict[str, object]:
    """Return the JSON object in the user's own file; `{}` if there is none that can be read."""
    path = expand_text(form, place)
    if path is None:
        return {}
    try:
        found = json.loads(read_bounded(path, limit_bytes=_USER_FILE_LIMIT_BYTES))
    except (RelayError, OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _find_free_port() -> int:
    """Return a loopback port without a listener now; the agent takes it moments later."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def build_hook_command(*, python: str = sys.executable, hook: str = HOOK_PATH) -> str:
    """Return the shell command of the hook entry, to be followed by its arguments.

    Whatever becomes of `python` and `hook` later, `hooks FOLDER` prints nothing and ends with 0.
    """
    return shlex.join(["/bin/sh", "-c", _GUARD, python, hook])


# The first words keep it from saying twice what the hooks of a leg say. `$0` is Python, `$1` hook.py.
_UNMANAGED_GUARD = (
    f'[ -n "${LEG_VARIABLE}" ] && exit 0; trap "exit 0" 0; exec 2>/dev/null; "$0" -I -S "$@" >&2; exit 0'
)


def build_unmanaged_command(
    folder: str, runtime: str, home: str, *, python: str = sys.executable, hook: str = HOOK_PATH
) -> str:
    """Return the shell command of a hook in an agent's own configuration, for agents relay did not start.

    It reports into `folder`. Inside a leg it does nothing, and whatever becomes of `python` and `hook` later,
    it prints nothing and ends with 0. `home` is the user's one folder for all that is ours, or empty.
    """
    words = ["/bin/sh", "-c", _UNMANAGED_GUARD, python, hook, "unmanaged", folder, runtime]
    named = f"{HOME_VARIABLE}={shlex.quote(home)} " if home else ""
    return named + shlex.join(words)
