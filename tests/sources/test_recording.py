import gzip
import json
import os

import pytest

from agent_relay.domain.errors import WrongUseError
from agent_relay.sources.recording import read_recording

Files = dict[str, bytes]


def write(folder: object, files: Files) -> str:
    for name, data in files.items():
        with open(os.path.join(str(folder), name), "wb") as file:
            file.write(data)
    return os.path.join(str(folder), next(iter(files)))


def lines(*events: object) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def test_a_bare_recording_has_its_size_in_its_name(tmp_path: object) -> None:
    """Otherwise the most common size is assumed."""
    named = read_recording(write(tmp_path, {"run-80x24.raw": b"bytes"}))
    assert (named.data, named.cols, named.rows) == (b"bytes", 80, 24)
    assert named.timing.settled == ()
    other = read_recording(write(tmp_path, {"run.raw": b""}))
    assert (other.cols, other.rows) == (120, 40)


def test_events_beside_it_say_when_it_paused_was_resized_and_typed_into(tmp_path: object) -> None:
    """Looks are where a live leg would have been looked at."""
    events = lines(
        {"t": 1.0, "o": 10, "off": 0},
        {"t": 1.01, "o": 5, "off": 10},
        {"t": 1.02, "o": 5, "off": 15},
        {"t": 2.0, "i": "he"},
        {"t": 2.1, "i": "llo\x1b[200~ you\x7f\r"},
        {"t": 2.2, "i": "\r"},
        {"t": 2.5, "mark": "resize to 100x30", "off": 20},
        {"t": 3.0, "o": 80, "off": 20},
        {"t": 9.0, "exit": 0},
    )
    files = {"run.raw": b"x" * 90, "run.events.jsonl": events + b'torn {"t"\n[1]\n'}
    recording = read_recording(write(tmp_path, files))
    assert recording.timing.settled == (10, 20, 90)
    assert recording.timing.sizes == ((20, 100, 30),)
    assert recording.timing.marks == ((0, 1.0), (10, 1.01), (15, 1.02), (20, 3.0))
    assert recording.timing.length_s == 9.0
    assert recording.typed == (("hello you", 2.1),)


def test_a_description_beside_it_gives_size_length_and_keys(tmp_path: object) -> None:
    """Keys are written as bytes literals; what is none is passed over."""
    meta = {
        "cols": 100,
        "rows": 30,
        "exit_t": 12.5,
        "inputs": [
            {"t": 1, "bytes": "b'go'"},
            {"t": 2, "bytes": "b'\\r'"},
            {"t": 3, "bytes": "open('x')"},
            {"t": 4, "bytes": "'text'"},
            7,
        ],
    }
    files = {
        "run.raw.gz": gzip.compress(b"bytes"),
        "run.meta.json.gz": gzip.compress(json.dumps(meta).encode()),
    }
    recording = read_recording(write(tmp_path, files))
    assert (recording.data, recording.cols, recording.rows) == (b"bytes", 100, 30)
    assert recording.timing.length_s == 12.5
    assert recording.typed == (("go", 2.0),)
    age_s = os.stat(os.path.join(str(tmp_path), "run.raw.gz")).st_mtime - recording.started_at.timestamp()
    assert age_s == pytest.approx(12.5, abs=0.01)


@pytest.mark.parametrize("meta", [b"torn", b"[]", b'{"inputs": 3, "cols": "x"}'])
def test_a_description_that_is_none_is_passed_over(tmp_path: object, meta: bytes) -> None:
    """The bytes are what counts."""
    recording = read_recording(write(tmp_path, {"run-80x24.raw": b"", "run-80x24.meta.json": meta}))
    assert (recording.cols, recording.typed) == (80, ())


@pytest.mark.parametrize("files", [{"run.raw.gz": b"no gzip"}, {"run.raw.gz": gzip.compress(b"x" * 99)[:-9]}])
def test_a_recording_that_cannot_be_read_is_an_error(tmp_path: object, files: Files) -> None:
    """One sentence with the path."""
    path = write(tmp_path, files)
    with pytest.raises(WrongUseError, match=r"run\.raw\.gz"):
        read_recording(path)
    with pytest.raises(WrongUseError, match="missing"):
        read_recording(os.path.join(str(tmp_path), "missing"))
