import sys
from pathlib import Path

import pytest

from agent_relay.daemon._application import load_each


def test_a_module_that_is_half_written_keeps_no_other_from_being_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that lives through an upgrade must not lack what it needs at the next limit."""
    (tmp_path / "relay_half_written.py").write_bytes(b"def begun():\n    return 1\0\0")
    (tmp_path / "relay_half_used.py").write_bytes(b"import json\n\njson.not_there_any_more()\n")
    (tmp_path / "relay_whole.py").write_bytes(b"")
    monkeypatch.syspath_prepend(tmp_path)
    load_each(["relay_half_written", "relay_half_used", "relay_never_there", "relay_whole"])
    assert sys.modules.pop("relay_whole", None) is not None
