"""The folder a command was given in; imports nothing heavy."""

import os

from agent_relay.domain.errors import RelayError


def get_cwd() -> str:
    """Return the absolute path of the working folder. Raise RelayError where it is gone or closed to us."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise RelayError(
            "the folder you are in has been deleted, so nobody can tell which project is meant",
            hint="Go to one that is there: cd FOLDER",
        ) from None
    except OSError as error:
        raise RelayError(
            f"the folder you are in cannot be found: {error.strerror}", hint="cd FOLDER"
        ) from error
