"""What a terminal asks for when it names an agent."""

import os
from dataclasses import dataclass, field

from agent_relay.app.legs import Luggage
from agent_relay.domain.errors import WrongUseError
from agent_relay.system.git import find_root


@dataclass(frozen=True, slots=True)
class OpenWish:
    """An agent at work in `cwd`, with the user's environment.

    `source` is the agent whose native session is to be adopted; without `launch` only a packet is wanted.
    """

    agent: str
    cwd: str
    environ: dict[str, str] = field(repr=False)
    rows: int = 24
    cols: int = 80
    args: tuple[str, ...] = ()
    task: str = ""
    session: str = ""
    fresh: bool = False
    source: str = ""
    focus: str = ""
    model: str = ""
    force: bool = False
    launch: bool = True

    def pack(self) -> Luggage:
        """What legs started for this wish take along."""
        return Luggage(
            self.environ, agent=self.agent, rows=self.rows, cols=self.cols, args=self.args, model=self.model
        )


def find_wished_root(cwd: str) -> str:
    """The folder that holds `.agent-relay` for work in `cwd`. Raises WrongUseError for no folder."""
    if not os.path.isabs(cwd) or not os.path.isdir(cwd):
        raise WrongUseError(f"{cwd} is not a folder")
    return find_root(cwd) or os.path.realpath(cwd)
