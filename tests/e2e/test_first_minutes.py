"""The page that shows a newcomer the relay shell shows it as it is."""

import importlib.util
import os

import pytest

from tests.house import tree


@pytest.mark.timeout(900)
def test_the_recorded_first_minutes_are_what_a_newcomer_sees() -> None:
    """Played again in a real terminal, the same keys show the same; else run docs/first_minutes.py."""
    place = os.path.join(tree.CHECKOUT, "docs", "first_minutes.py")
    spec = importlib.util.spec_from_file_location("first_minutes", place)
    assert spec is not None
    assert spec.loader is not None
    walk = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(walk)
    assert walk.build_page() == tree.read_text("docs/first-minutes.md")
