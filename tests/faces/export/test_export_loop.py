"""The exporter's readings: what is told where they do not succeed."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.protocol.watch_output import Figure
from agent_relay.faces.export._figures import ExportLoop, ExportReader
from agent_relay.faces.watch.view import View
from agent_relay.faces.watch.watcher import WatchedSessions, Watcher
from agent_relay.system.disk.folders import Folders

pytestmark = pytest.mark.size("test")


class FailingReader(ExportReader):
    """A reader whose readings end one after another as they were told to."""

    def __init__(self, folders: Folders, errors: Iterator[Exception]) -> None:
        super().__init__(folders, {})
        self._errors = errors

    def read(self, _view: View, _now: datetime) -> list[Figure]:
        """Raise the next one."""
        raise next(self._errors)


def test_figures_that_stand_still_are_said_to(tmp_path: os.PathLike[str]) -> None:
    """A dashboard showed what was true an hour ago, and nobody was told."""
    folders = Folders(f"{tmp_path}/config", f"{tmp_path}/state", f"{tmp_path}/run")
    over = OSError("over")
    errors = iter(
        [RelayError("the disk is gone"), RelayError("the disk is gone"), RelayError("it burns"), over]
    )
    warned: list[str] = []
    watcher = Watcher(folders, WatchedSessions(), zone=UTC)
    loop = ExportLoop(watcher, FailingReader(folders, errors), interval_s=0.001, warn=warned.append)
    with pytest.raises(OSError, match="over"):
        loop.run(lambda _event: None)
    assert warned == [
        "the figures are not being updated: the disk is gone",
        "the figures are not being updated: it burns",
    ]
