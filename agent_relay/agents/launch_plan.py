"""Turn an adapter's launch data and a leg's values into the argument vector and environment of a process."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agent_relay.domain.documents.adapter import Adapter, Launch, SourceSpec
from agent_relay.domain.errors import ConfigurationError

OWN_PREFIX = "AGENT_RELAY_"
STREAM_FILE = "stream.jsonl"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """How a leg's process is started: the program's absolute path first in `argv`."""

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
    for words in (begin, launch.args, launch.model_args, launch.packet_args):
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
    launch = adapter.launch.model_copy(
        update={
            "args": spec.args,
            "fresh_args": spec.fresh_args,
            "resume_args": spec.resume_args,
            "env": {**adapter.launch.env, **spec.env},
            "files": spec.files or adapter.launch.files,
            "needs_port": False,
            "relaunch_status": 0,
        }
    )
    stream = SourceSpec(
        role="stream", framing="jsonl", path=f"{{leg_folder}}/{STREAM_FILE}", names=spec.names
    )
    kept = (source for source in adapter.sources if source.role in spec.keeps)
    sources = (stream, *kept, *spec.sources)
    return adapter.model_copy(update={"launch": launch, "sources": sources, "quit": spec.quit})


def chooses_session(launch: Launch, words: Sequence[str]) -> bool:
    """Return whether the user's own arguments name a native session, so that ours must not."""
    return any(word.partition("=")[0] in launch.session_flags for word in words)


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
    return env


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


KNOWN_VALUES = frozenset(
    {"native_id", "model", "leg_folder", "packet", "packet_folder", "port", "password", "cwd", "home"}
)
"""The placeholders an adapter may use in arguments and environment."""
