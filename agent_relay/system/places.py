"""Where this installation keeps its data: the wheel's folders, else the checkout's."""

import os

from agent_relay.domain.errors import ConfigurationError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def find_builtin_folder() -> str:
    """The adapters shipped with this installation. Raises ConfigurationError where it has none."""
    return _find("_adapters", "adapters")


def find_example_folder() -> str:
    """A project's folder as it looks after one handoff. Raises ConfigurationError where it has none."""
    return _find("_example", ".agent-relay.example")


def _find(in_wheel: str, in_checkout: str) -> str:
    for folder in (os.path.join(_PACKAGE, in_wheel), os.path.join(os.path.dirname(_PACKAGE), in_checkout)):
        if os.path.isdir(folder):
            return folder
    raise ConfigurationError(f"this installation lacks its {in_checkout}", hint="Install agent-relay again.")
