"""Build the key of a cached report: the words, the folder and what the output can show.

Imports nothing heavy: a cached report is shown at the cost of a bare Python.
"""

import os
import sys

from agent_relay.domain.protocol.quick_json import render_json
from agent_relay.store.session_summaries import find_near_root
from agent_relay.system.disk.folders import get_cwd


def build_cache_key(words: list[str]) -> str:
    """Return what a report depends on: the words, the folder and its root, the output's encoding and size."""
    out, folder = sys.stdout, get_cwd()
    size = tuple(os.get_terminal_size(out.fileno())) if out.isatty() else ()
    return render_json([words, folder, find_near_root(folder), out.encoding, size])
