import copy
import re
import subprocess
import sys

import pytest

from agent_relay.domain.text.plain import compile_late
from tests.house import tree

ALL = """
import gc, importlib, pkgutil
import agent_relay
from agent_relay.domain.text.plain import compile_late
gc.disable()
for module in pkgutil.walk_packages(agent_relay.__path__, "agent_relay."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
late = [one for one in gc.get_objects() if type(one) is type(compile_late(""))]
for one in late:
    one.search("" if isinstance(one.pattern, str) else b"")
print(len(late))
"""


def test_a_late_pattern_answers_as_a_compiled_one_does() -> None:
    """Nobody who asks can tell when it was compiled."""
    late = compile_late(r"(?P<word>[a-z]+)-(\d)", re.IGNORECASE)
    found = late.search("see AB-1 and cd-2")
    assert found is not None
    assert found.groupdict() == {"word": "AB"}
    assert late.match("ab-1!") is not None
    assert late.fullmatch("ab-1!") is None
    assert [match[2] for match in late.finditer("a-1 b-2")] == ["1", "2"]
    assert late.findall("a-1 b-2") == [("a", "1"), ("b", "2")]
    assert late.sub(r"\2", "a-1 b-2") == "1 2"
    assert late.subn("", "a-1 b-2") == (" ", 2)
    assert late.split("x a-1 y") == ["x ", "a", "1", " y"]
    assert (late.pattern, late.groups) == (r"(?P<word>[a-z]+)-(\d)", 2)


def test_a_late_pattern_of_bytes_reads_bytes() -> None:
    """Terminal output is bytes."""
    assert compile_late(rb"\d+").findall(b"1 22") == [b"1", b"22"]


def test_it_is_compiled_when_it_is_first_asked() -> None:
    """That is what makes the start cheap; a pattern that is none is therefore told only then."""
    late = compile_late("(")
    with pytest.raises(re.error):
        late.search("")


def test_it_can_be_copied_before_and_after() -> None:
    """Whoever copies it asks for names no pattern has."""
    late = compile_late("a+")
    assert copy.copy(late).findall("aa b a") == ["aa", "a"]
    assert late.findall("aa b a") == ["aa", "a"]
    assert not hasattr(late, "_unknown")


@pytest.mark.size("test")
def test_every_late_pattern_of_ours_is_one() -> None:
    """A mistake in one must be seen here, not by the user whose handoff is the first to need it."""
    done = subprocess.run(
        [sys.executable, "-c", ALL],
        cwd=tree.CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert int(done.stdout) > 300
