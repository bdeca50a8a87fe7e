"""The user's configuration as it is now, for a process that outlives its changes."""

import logging
import os

from agent_relay.domain.config import UserConfig
from agent_relay.domain.errors import ConfigurationError
from agent_relay.system.config import FILE_NAME, read_user_config
from agent_relay.system.shortages import find_passing

_log = logging.getLogger(__name__)


class FollowedConfig:
    """Reads the file again once it is another one; while it cannot be meant, what was known stays."""

    def __init__(self, folder: str) -> None:
        """Raises ConfigurationError where the file cannot be meant."""
        self._folder = folder
        self._problem: ConfigurationError | None = None
        # `None` where it is to be read again though it is the same file: it could not be opened.
        self._seen: tuple[int, int, int, int] | None = self._look()
        self._config = read_user_config(folder)

    def get(self) -> UserConfig:
        """The user's wishes."""
        seen = self._look()
        if seen != self._seen:
            self._seen = seen
            self._problem = None
            try:
                self._config = read_user_config(self._folder)
            except ConfigurationError as problem:
                _log.warning("config-not-read")
                self._problem = problem
                if find_passing(problem):
                    self._seen = None
        return self._config

    def find_problem(self) -> ConfigurationError | None:
        """Return why the file as it is now is not what counts; `None` where it is."""
        self.get()
        return self._problem

    def _look(self) -> tuple[int, int, int, int]:
        try:
            found = os.stat(os.path.join(self._folder, FILE_NAME))
        except OSError:
            return 0, 0, 0, 0
        # The time of change tells of a file that may be read now and could not before.
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
