"""The environment a leg is launched with: the user's variables, their terminal's size, what they gave."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from agent_relay.domain.errors import RelayError
from agent_relay.terminal.holder_client import HolderConnection


@dataclass(frozen=True, slots=True)
class LaunchEnvironment:
    """What a terminal sent for its legs, kept by the holder in memory so that it never touches the disk.

    `environ` is the user's whole environment; `args` and `model` were given for `agent` alone; `values` are
    what filled the leg's placeholders. `task` is what it is to work on, in the user's own words: the journal
    has them without secrets. `more` is what another version added: it is given to later legs.
    """

    environ: Mapping[str, str] = field(repr=False)
    agent: str = ""
    rows: int = 24
    cols: int = 80
    args: tuple[str, ...] = ()
    model: str = ""
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    task: str = field(default="", repr=False)
    more: Mapping[str, object] = field(default_factory=dict, repr=False)


_FIELDS = {each.name for each in fields(LaunchEnvironment)} - {"more"}


async def read_launch_environment(holder: HolderConnection) -> LaunchEnvironment:
    """Return the launch environment of the holder's leg.

    Raises RelayError if the holder kept something else or is gone.
    """
    return parse_launch_environment(await holder.luggage())


def render_launch_environment(launch_environment: LaunchEnvironment, values: Mapping[str, str]) -> str:
    """Return the text a holder keeps of `launch_environment`, with `values` for its leg's placeholders."""
    known = {**asdict(launch_environment), "values": dict(values)}
    del known["more"]
    return json.dumps({**launch_environment.more, **known})


def parse_launch_environment(text: str) -> LaunchEnvironment:
    """Parse the text a holder kept, of this version or another one, which may know more or less.

    Raises RelayError if it is something else: without the user's environment nothing can be started.
    """
    try:
        found = json.loads(text)
        known = {name: found.pop(name) for name in _FIELDS & found.keys()}
        launch_environment = LaunchEnvironment(
            **{**known, "args": tuple(known.get("args", ())), "more": found}
        )
    except (ValueError, TypeError, AttributeError, RecursionError):
        launch_environment = None
    environ = launch_environment.environ if launch_environment is not None else None
    if (
        launch_environment is None
        or not isinstance(environ, dict)
        or not all(isinstance(one, str) for one in environ.values())
    ):
        raise RelayError("the holder's copy of the user's environment cannot be read")
    return launch_environment
