"""Writes `.agent-relay.example` anew from a kept demo.

    agent-relay demo --fast --keep
    python -m tests.support.write_example FOLDER-THAT-WAS-KEPT

Formats must stay readable: do this when a version is added, and keep the old example as a test's fixture.
"""

import json
import os
import shutil
import sys

from agent_relay.logic.packet_json import parse_packet
from agent_relay.system.store import publish_packet
from agent_relay.system.store_reading import list_packets
from tests.house import tree

PROJECT = "/home/ada/project"
HOME = "/home/ada"


def main(kept: str) -> int:
    """0; the example tells the kept demo's session as it would have gone in `PROJECT`."""
    target = os.path.join(tree.CHECKOUT, ".agent-relay.example")
    source = os.path.join(kept, "project", ".agent-relay")
    shutil.rmtree(target, ignore_errors=True)
    (session,) = os.listdir(os.path.join(source, "sessions"))
    folder = os.path.join(target, "sessions", session)
    os.makedirs(folder)
    for name in ("agent-relay.json", ".gitignore"):
        shutil.copyfile(os.path.join(source, name), os.path.join(target, name))

    def move(text: str) -> str:
        return text.replace(os.path.join(kept, "project"), PROJECT).replace(kept, HOME)

    old = os.path.join(source, "sessions", session)
    prints = {}
    for _, _, path in list_packets(old):
        document = json.loads(move(_read(path)))
        seal = document.pop("published", None) or {}
        text = move(_read(f"{path.removesuffix('.json')}.md"))
        done = publish_packet(folder, parse_packet(document), text)
        prints[str(seal.get("document"))] = done.fingerprint
    journal = move(_read(os.path.join(old, "journal.jsonl")))
    for before, after in prints.items():
        journal = journal.replace(before, after)
    with open(os.path.join(folder, "journal.jsonl"), "w", encoding="utf-8") as stream:
        stream.write(journal)
    return 0


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        return stream.read()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
