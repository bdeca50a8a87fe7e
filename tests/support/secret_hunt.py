"""Planted secrets on one side, everything relay writes or shows on the other: what leaked, and from where."""

import contextlib
import os
import random
import re
import threading
from collections.abc import Iterable, Iterator

from tests.redact.planted import TOKENS, Planted, leaks
from tests.support.relay_world import RelayWorld

_PLACEHOLDER = re.compile(r"\[redacted: [a-z-]+\]")
_ADDRESSES = ("https://hooks.slack.com/services/", "https://discord.com/api/webhooks/")
_LENGTH = 12
_EVERY_S = 0.1


def plant_everywhere(*places: str) -> dict[str, list[Planted]]:
    """For each place one secret of every kind, no two alike: a leak names its kind and where it came from."""
    planted = {}
    for number, place in enumerate(places):
        chance = random.Random(1000 + number)  # noqa: S311 - reproducible, not secret
        planted[place] = [
            Planted(kind, place, secret, secret)
            for kind, secret in ((kind, build(chance)) for kind, build in TOKENS.items())
        ]
    return planted


class Hunt:
    """Looks for secrets in texts; `found` names each leak once. Twelve characters in a row are a leak."""

    def __init__(self, planted: Iterable[Planted]) -> None:
        self.found: set[str] = set()
        self.texts = 0
        self._names: dict[str, str] = {}
        self._seen: set[int] = set()
        self._versions: set[tuple[object, ...]] = set()
        for one in planted:
            secret = one.secret
            for address in _ADDRESSES:
                secret = secret.removeprefix(address)
            assert leaks(one, secret)
            for at in range(len(secret) - _LENGTH + 1):
                self._names[secret[at : at + _LENGTH]] = f"{one.kind} from {one.context}"

    def look(self, text: str, where: str) -> None:
        """Leaks in `text` are noted; a text seen before costs nothing."""
        if hash(text) in self._seen:
            return
        self._seen.add(hash(text))
        self.texts += 1
        plain = _PLACEHOLDER.sub("", text)
        for at in range(len(plain) - _LENGTH + 1):
            name = self._names.get(plain[at : at + _LENGTH])
            if name is not None:
                self.found.add(f"{name}, in {where}")

    def look_below(self, folder: str) -> None:
        """Leaks in every file and name below `folder`."""
        for place, _, files in os.walk(folder):
            for name in files:
                path = f"{place}/{name}"
                with contextlib.suppress(OSError), open(path, "rb") as file:
                    found = os.stat(file.fileno())
                    version = (path, found.st_ino, found.st_size, found.st_mtime_ns)
                    if version in self._versions:
                        continue
                    self._versions.add(version)
                    self.look(f"{name}\n" + file.read().decode("utf-8", "replace"), path)


@contextlib.contextmanager
def hunting(hunt: Hunt, world: RelayWorld, *folders: str) -> Iterator[None]:
    """While this lasts, files below `folders` and command lines of the world's processes are looked at."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(_EVERY_S):
            for folder in folders:
                hunt.look_below(folder)
            for pid, command in world.processes().items():
                hunt.look(command, f"the command line of {pid}")

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
