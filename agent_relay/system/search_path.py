"""Where programs are looked for: never in the folder one happens to be in, which may be somebody else's."""

import os


def keep_absolute(path: str) -> str:
    """The folders of a `PATH` but for empty and relative ones.

    Such stand for the folder a program is started in, here mostly a repository: what it calls `git` is not
    what the user means, and relay asks git before anybody has looked at the repository.
    """
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if os.path.isabs(folder))
