"""The user's configuration as it is now, for a process that outlives its changes."""

import logging
import os

from agent_relay.domain.config import UserConfig
from agent_relay.domain.errors import ConfigurationError
from agent_relay.system.config import FILE_NAME, read_user_config

_log = logging.getLogger(__name__)


class FollowedConfig:
    """Reads the file again once it is another one; while it cannot be meant, what was known stays."""

    def __init__(self, folder: str) -> None:
        """Raises ConfigurationError where the file cannot be meant."""
        self._folder = folder
        self._seen = self._look()
        self._config = read_user_config(folder)

    def get(self) -> UserConfig:
        """The user's wishes."""
        seen = self._look()
        if seen != self._seen:
            self._seen = seen
            try:
                self._config = read_user_config(self._folder)
            except ConfigurationError:
                _log.warning("config-not-read")
        return self._config

    def _look(self) -> tuple[int, int, int]:
        try:
            found = os.stat(os.path.join(self._folder, FILE_NAME))
        except OSError:
            return 0, 0, 0
        return found.st_ino, found.st_mtime_ns, found.st_size
