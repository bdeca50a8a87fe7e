"""What lets child processes be measured by `make coverage`; nothing at all in any other run."""

import os
import shlex
import sys

_NAME = "COVERAGE_PROCESS_CONFIG"


def is_measured() -> bool:
    """Whether coverage runs here and wants to run in child processes."""
    return _NAME in os.environ


def measured() -> dict[str, str]:
    """The variable by which coverage starts in a child, where it runs here.

    Its `.pth` file in site-packages looks for it: programs started with `-S` are not measured by this.
    """
    return {_NAME: os.environ[_NAME]} if is_measured() else {}


def find_holder_python(folder: str) -> str:
    """The Python that starts a holder; where coverage runs here, one that lets it, written beside `folder`.

    A holder starts without site-packages and without an environment, so that coverage would not start.
    """
    if not is_measured():
        return sys.executable
    path = f"{folder}.python"
    begin = f"{_NAME}={shlex.quote(os.environ[_NAME])} exec {shlex.quote(sys.executable)}"
    with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o700)) as script:
        script.write(f'#!/bin/sh\n[ "$*" = "-I -S -X utf8 $5" ] || exit 2\n{begin} -I -X utf8 "$5"\n')
    return path
