"""Agents of the user's own making, for tests: copies of the demo agent under other names."""

import os
import shutil

from tests.house import tree
from tests.support.at_work import restart
from tests.support.relay_world import RelayWorld

_LAUNCH = 'native_id = "uuid4"\n'


def add_adapter(
    world: RelayWorld, name: str, *, launch: str = "", program: str = "", script: str = ""
) -> str:
    """An adapter `name` of the user's, the demo agent's but for `launch` and `program`; its folder.

    A `script` is the program instead, in a shell's words; `{agent}` in them is the demo agent. Another daemon
    knows it. It plays its own screenplay where there is one, else the demo agent's.
    """
    folder = f"{world.folders.config}/adapters/{name}"
    shutil.copytree(os.path.join(tree.ADAPTERS, "demo"), folder)
    path = f"{folder}/adapter.toml"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = text.replace('"demo"', f'"{name}"').replace("/demo/", f"/{name}/")
    text = text.replace(_LAUNCH, _LAUNCH + launch)
    if script:
        program = "start.sh"
        with open(f"{folder}/{program}", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script.replace("{agent}", f"{folder}/agent.py"))
        os.chmod(f"{folder}/{program}", 0o700)
    if program:
        text = text.replace("./agent.py", f"./{program}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    plays = world.environ["DEMO_AGENT_SCREENPLAYS"]
    if not os.path.exists(f"{plays}/{name}.json"):
        shutil.copy(f"{plays}/demo.json", f"{plays}/{name}.json")
    restart(world)
    return folder
