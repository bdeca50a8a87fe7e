"""Documents written by hand are read by several threads at once."""

import subprocess
import sys

import pytest

_AT_ONCE = """
import sys, threading
import msgspec
from agent_relay.domain.documents.handwritten import Strict
from agent_relay.system.config_file import parse_document

sys.setswitchinterval(1e-6)
for number in range(60):
    inner = msgspec.defstruct(f"Inner{number}", [(f"f{at}", int, 0) for at in range(40)])
    fields = [(f"f{at}", inner | None, None) for at in range(40)]
    model = msgspec.defstruct(f"Document{number}", fields, bases=(Strict,), frozen=True)
    together = threading.Barrier(4)

    def read():
        together.wait()
        assert parse_document({"f1": {"f2": 3}}, model, "it.toml").f1.f2 == 3

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("read")
"""


@pytest.mark.size("test")
def test_documents_of_a_kind_that_was_never_read_before_crash_nothing() -> None:
    """A daemon reads the rules of all its agents in threads as soon as it starts."""
    done = subprocess.run([sys.executable, "-c", _AT_ONCE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "read\n", "")
