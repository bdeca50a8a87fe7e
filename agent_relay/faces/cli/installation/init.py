"""`agent-relay init`: this repository's private folder and the user's configuration, made and explained."""

import os
from typing import Annotated

import typer

from agent_relay.faces.render.output import print_json, print_lines
from agent_relay.store.project import open_project
from agent_relay.store.session_index import find_near_root
from agent_relay.system.config_file import FILE_NAME, create_config, read_user_config
from agent_relay.system.disk.folders import get_cwd, get_folders

TEMPLATE = """\
# agent-relay's configuration. Every line is optional; the lines after # show the defaults.

# The agents that may take over, preferred first (also: agent-relay order AGENT…). Default: all installed.
# order = ["AGENT", "AGENT"]

# How many seconds an agent may wait by itself before that counts as a limit.
# patience_s = 300

# When a preferred agent is available again: "offer" it once, go back ("auto"), or "off".
# return = "offer"

# How to alert you when you are not watching: "auto" (by the terminal's bell and notifications, or by the
# desktop's where no terminal is attached), "off", or a list of "bell", "osc", "desktop", "webhook:https://…".
# notify = "auto"

# Continue at the first reset once every agent rests? "ask", true or false. If the daemon was killed meanwhile
# and no terminal is attached, work continues when the next command starts a daemon.
# resume_at_reset = "ask"

# No automatic work during these hours, by relay or by an agent's own timer: "22:00-07:00" or "always".
# quiet_hours = ""

# The key that opens the relay prompt inside an agent's screen; twice sends it to the agent.
# relay_key = "ctrl-]"

# A limit of one model: "handoff" to the next agent, or keep the same one on its fallback "model".
# model_remedy = "handoff"

# Settings for one agent: arguments of every launch, a model, the model to fall back to at a limit of that one
# (see model_remedy; without it the next agent takes over), the size of the packets it gets in tokens.
# [agents.AGENT]
# args = []
# model = ""
# fallback_model = ""
# budget_tokens = 6000

# A handoff document an agent wrote is also saved beside the packets.
# [handoff]
# save_to_disk = false

# What looks like a secret and is none, so that packets keep it: texts, and patterns of whole values.
# [redaction]
# allow = []
# allow_patterns = []
"""


def init(
    *, as_json: Annotated[bool, typer.Option("--json", help="As JSON: {root, folder, config}.")] = False
) -> None:
    """Prepare this repository and your configuration; harmless when repeated, and never needed."""
    root, own = find_near_root(get_cwd()), get_folders().config
    folder = open_project(root)
    config, made = os.path.join(own, FILE_NAME), create_config(own, TEMPLATE)
    read_user_config(own)
    if as_json:
        view = {"root": root, "folder": folder, "config": config, "config_made": made}
        print_json(view)
        return
    print_lines(
        f"{folder} is ready: private, and ignored by git.",
        f"{config} {'was written' if made else 'exists already and was not changed'}.",
        "Next: agent-relay doctor, then agent-relay <agent>",
    )
