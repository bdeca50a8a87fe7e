"""What was asked of `agent-relay metrics`, as one text; imports nothing heavy."""

import os
import sys

from agent_relay.domain.quick_json import render_json
from agent_relay.system.glances import find_near_root
from agent_relay.system.working_folder import get_cwd


def build_question(words: list[str]) -> str:
    """What a report is an answer to: the words, where they were said, and what can be shown there."""
    out, folder = sys.stdout, get_cwd()
    size = tuple(os.get_terminal_size(out.fileno())) if out.isatty() else ()
    return render_json([words, folder, find_near_root(folder), out.encoding, size])
