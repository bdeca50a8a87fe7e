"""Pages made from code say what the code does now."""

import importlib.util
import os
from types import ModuleType

import pytest

from tests.house import tree


@pytest.mark.parametrize("page", ["states.md", "cli.md", "shell.md"])
def test_generated_pages_are_current(page: str) -> None:
    """A page that is out of date is worse than none; `make docs` writes them again."""
    assert tree.read_text(f"docs/{page}") == load("generate").PAGES[page]()


def test_the_picture_of_a_failover_is_drawn_from_its_recording() -> None:
    """A picture nobody can draw again cannot be mended."""
    assert tree.read_text("docs/failover.svg") == load("failover_picture").render()


def test_the_picture_of_a_session_over_time_is_what_is_drawn_now() -> None:
    """A picture of an older drawing explains signs that nobody is shown."""
    assert tree.read_text("docs/timeline.svg") == load("timeline_picture").render()


def test_pages_with_screens_are_written_from_those_that_were_kept() -> None:
    """A screen that somebody changed by hand was on no terminal."""
    for name, build in load("tried_by_hand").PAGES.items():
        assert tree.read_text(f"docs/{name}") == build()


def load(name: str) -> ModuleType:
    """A script beside the pages it writes, as a module."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(tree.CHECKOUT, "docs", f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_between_pages_lead_somewhere() -> None:
    """A reader who follows a link into nothing stops reading."""
    broken = []
    for name in tree.tracked_files():
        if name.endswith(".md") and (name.startswith("docs/") or "/" not in name):
            for target in _list_links(tree.read_text(name)):
                path = os.path.normpath(os.path.join(tree.CHECKOUT, os.path.dirname(name), target))
                if not os.path.exists(path):
                    broken.append(f"{name} -> {target}")
    assert broken == []


def _list_links(text: str) -> list[str]:
    parts = text.split("](")[1:]
    targets = [part.split(")", 1)[0].split("#")[0] for part in parts]
    return [target for target in targets if target and "://" not in target]
