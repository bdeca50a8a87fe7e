"""A holder whose parts raise where a test says so: `python -m tests.support.faulty_holder FOLDER PROGRAM`.

Beside what every holder answers it does `plant` (`name` of a part and its attribute, how many `times`): the
next uses of that raise. A request with `plants` raises there while it is answered, once. `planted` tells what
was planted and has not been met.
"""

import os
import sys

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.holder._holder import Holder
from agent_relay.terminal.holder._operations import answer
from agent_relay.terminal.holder._output import Output
from agent_relay.terminal.holder._peers import HolderPeer
from agent_relay.terminal.holder.wire import HolderSpec

SECRET = "a-prompt-nobody-may-read"


class Plan:
    """How often each attribute of a part will raise."""

    def __init__(self) -> None:
        self.times: dict[str, int] = {}

    def meet(self, name: str) -> None:
        """Raises where that is planted."""
        if self.times.get(name, 0) > 0:
            self.times[name] -= 1
            raise RuntimeError(SECRET)


class Part:
    """Stands for a part of a leg, and raises where the plan says so."""

    def __init__(self, part: object, name: str, plan: Plan) -> None:
        object.__setattr__(self, "_part", part)
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_plan", plan)

    def __getattr__(self, attribute: str) -> object:
        self._plan.meet(f"{self._name}.{attribute}")
        return getattr(self._part, attribute)

    def __setattr__(self, attribute: str, value: object) -> None:
        setattr(self._part, attribute, value)

    def renew(self) -> "Part":
        """The emulator's own way to another one of its size."""
        return Part(self._part.renew(), self._name, self._plan)


def main() -> None:
    """Hold the program until it ended."""
    folder, *argv = sys.argv[1:]
    spec = HolderSpec(
        argv=argv, env=dict(os.environ), cwd=folder, leg_folder=folder, rows=24, cols=80, lock_fd=-1
    )
    plan = Plan()
    leg = Holder(spec)
    emulator = Part(Emulator(find_library() or "", 80, 24), "emulator", plan)
    output = Part(Output(emulator, leg.faults), "output", plan)  # type: ignore[arg-type]
    leg.serve(output, lambda *given: _handle(plan, *given))  # type: ignore[arg-type]
    for name in ("child", "terminals", "typing", "peers", "loop", "spec"):
        setattr(leg, name, Part(getattr(leg, name), name, plan))
    os.write(1, b"ready\n")
    leg.loop.run()


def _handle(plan: Plan, leg: Holder, peer: HolderPeer, message: dict[str, object]) -> None:
    if message.get("op") == "plant":
        plan.times[str(message["name"])] = int(str(message["times"]))
        for terminal in leg.terminals.all:
            terminal.keys = Part(terminal.keys, "keys", plan)  # type: ignore[assignment]
        peer.send({"id": message.get("id"), "ok": True})
    elif message.get("op") == "planted":
        peer.send({"ok": True, "left": [name for name, times in plan.times.items() if times > 0]})
    else:
        if isinstance(name := message.get("plants"), str):
            plan.times[name] = 1
        answer(leg, peer, message)


if __name__ == "__main__":
    main()
