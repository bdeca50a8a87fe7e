"""A command of ours under way whose output is read as it comes, for tests."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

from tests.support.measured import is_measured, measured
from tests.support.preloaded import Command, Process


@dataclass(frozen=True, slots=True)
class Piped:
    """Its process, and the ends of its pipes."""

    process: Process
    stdout: TextIO
    stderr: TextIO

    def end(self, number: int) -> int:
        """How it ended after the Unix signal `number`, as a shell has it."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """How it ended, as a shell has it."""
        status = self.process.wait(120)
        return 128 - status if status < 0 else status


@contextlib.contextmanager
def piped(command: Command) -> Iterator[Piped]:
    """It works from now on, with nothing on its standard input; what is left of it at the end is killed."""
    (out, told), (err, warned) = os.pipe(), os.pipe()
    process: Process
    with open(os.devnull, "rb") as nothing, os.fdopen(told, "wb"), os.fdopen(warned, "wb"):
        if is_measured():
            process = subprocess.Popen(
                command.argv,
                env={**command.env, **measured()},
                cwd=command.cwd,
                stdin=nothing,
                stdout=told,
                stderr=warned,
            )
        else:
            process = command.start([nothing.fileno(), told, warned], leads=False)
    with os.fdopen(out, encoding="utf-8") as output, os.fdopen(err, encoding="utf-8") as errors:
        try:
            yield Piped(process, output, errors)
        finally:
            process.kill()
            process.wait(120)
