"""An adapter's path patterns mean just this leg's files, whatever characters its folders are named with."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.agents.source_paths import LegPlace, PathPattern, expand_path, expand_text
from agent_relay.domain.errors import ConfigurationError

VALUES = {"home": "/home/u", "cwd": "/r/a_b c", "native_id": "0123-4567", "leg_folder": "/run/legs/L*"}


def place(environ: dict[str, str] | None = None, **values: str) -> LegPlace:
    """A leg with those values over the usual ones."""
    return LegPlace("leg", datetime(2026, 11, 20, tzinfo=UTC), {**VALUES, **values}, environ or {})


def expand(template: str, environ: dict[str, str] | None = None, **values: str) -> str | None:
    """The pattern with its wild stars shown as `<*>`."""
    pattern = expand_path(template, place(environ, **values))
    return None if pattern is None else pattern.text.replace("\0", "<*>")


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("{leg_folder}/hooks.jsonl", "/run/legs/L*/hooks.jsonl"),
        ("{home}/.c/projects/{cwd_slug}/{native_id}.jsonl", "/home/u/.c/projects/-r-a-b-c/0123-4567.jsonl"),
        ("{home}/chats/session-*-{native_id:4}.jsonl", "/home/u/chats/session-<*>-0123.jsonl"),
        ("{C_HOME:-{home}/.c}/s/**/r-*.jsonl", "/home/u/.c/s/<*><*>/r-<*>.jsonl"),
        ("{home}//x/../y/./z", "/home/u/y/z"),
        ("relative/z", "/r/a_b c/relative/z"),
        ("/*/x", "/<*>/x"),
        ("{home}/.*", "/home/u/.<*>"),
    ],
)
def test_placeholders_become_this_legs_paths(template: str, path: str) -> None:
    """Only the adapter's own stars are wild: a folder may be named with one."""
    assert expand(template) == path


def test_environment_forms_prefer_the_agents_environment() -> None:
    """Users move their agents' folders by variables; an empty one means the default."""
    assert expand("{C_HOME:-{home}/.c}/x", {"C_HOME": "/else"}) == "/else/x"
    assert expand("{C_HOME:-{home}/.c}/x", {"C_HOME": ""}) == "/home/u/.c/x"
    assert expand("{C_HOME}/x", {"C_HOME": "/else"}) == "/else/x"
    assert expand("{C_HOME}/x") is None
    assert expand("{C_HOME:-{pid}}/x") is None


def test_a_value_not_yet_known_is_waited_for_and_an_unknown_native_id_is_any() -> None:
    """Some agents choose their session's id themselves: until we learn it, new files are candidates."""
    assert expand("{home}/{pid}.json") is None
    assert expand("{home}/{native_id:8}.jsonl", native_id="") == "/home/u/<*>.jsonl"
    assert expand_text("http://127.0.0.1/{native_id}", place(native_id="")) is None
    assert expand_text("http://127.0.0.1/{native_id}", place()) == "http://127.0.0.1/0123-4567"


@pytest.mark.parametrize("template", ["{nonsense}", "{home", "{}", "{home:x}", "{cwd slug}"])
def test_a_misspelt_placeholder_is_an_error(template: str) -> None:
    """An adapter that never reads its evidence would fail silently."""
    with pytest.raises(ConfigurationError):
        expand(template)


def test_the_slug_of_a_folder_counts_in_utf_16() -> None:
    """A program that does not know characters beyond 16 bits replaces each by two dashes."""
    assert expand("/{cwd_slug}", cwd="/r/é😀.x") == "/-r-----x"


@pytest.mark.parametrize(
    ("text", "path", "matches", "below"),
    [
        ("/a/b.json", "/a/b.json", True, False),
        ("/a/b.json", "/a", False, True),
        ("/a/b.json", "/a/c.json", False, False),
        ("/a/\0/x-\0.json", "/a/p/x-1.json", True, False),
        ("/a/\0/x-\0.json", "/a/p/q/x-1.json", False, False),
        ("/a/\0/x-\0.json", "/a/p", False, True),
        ("/a/\0/x-\0.json", "/", False, True),
        ("/a/\0/x-\0.json", "/b/p", False, False),
        ("/a/x-\0", "/a/y", False, False),
        ("/a/\0\0/x", "/a/x", True, True),
        ("/a/\0\0/x", "/a/b/c/x", True, True),
        ("/a/\0\0", "/a/b/c", True, False),
        ("/a/[x].\0", "/a/[x].y\nz", True, False),
        ("/a/[x].\0", "/a/x.y", False, False),
    ],
)
def test_a_changed_path_is_known_for_what_it_is(text: str, path: str, *, matches: bool, below: bool) -> None:
    """Of all that changes in a watched folder, only what can matter is looked at."""
    assert PathPattern(text).matches(path) is matches
    assert PathPattern(text).may_lie_below(path) is below


def test_a_pattern_finds_what_it_matches(tmp_path: Path) -> None:
    """Hidden folders, brackets and odd names included."""
    root = os.path.join(str(tmp_path), "[w]*")
    names = ["a/.h/x-1.json", "a/x-2.json", "x-3.json", "a/y.json"]
    for name in names:
        os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
        with open(os.path.join(root, name), "w", encoding="utf-8"):
            pass
    pattern = expand_path("{home}/**/x-*.json", place(home=root))
    assert pattern is not None
    found = sorted(pattern.find())
    assert [os.path.relpath(path, root) for path in found] == ["a/.h/x-1.json", "a/x-2.json", "x-3.json"]
    assert all(pattern.matches(path) for path in found)
    assert pattern.folder == root
    literal = expand_path("{home}/x-3.json", place(home=root))
    assert literal is not None
    assert list(literal.find()) == [os.path.join(root, "x-3.json")]
    missing = expand_path("{home}/none", place(home=root))
    assert missing is not None
    assert list(missing.find()) == []


def test_a_value_that_no_path_can_hold_makes_no_pattern() -> None:
    """The character stands for the adapter's own stars: a conversation could else name all files."""
    assert expand("{home}", home="/home/u/\0\0/\0") is None
    assert expand("{home}/{native_id}.jsonl", native_id="\0") is None
