"""A mistake in a document that people write by hand is found by its place and said in plain words."""

import pytest

from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.documents.config import UserConfig
from agent_relay.domain.documents.handwritten import MistakeError
from agent_relay.domain.documents.rules import Rules

ADAPTER = {
    "name": "ann",
    "title": "Ann",
    "launch": {"program": "ann"},
    "deliver": {"packet_by": "args", "opening": "go"},
    "quit": [{"signal": "SIGTERM", "wait_s": 3}],
}


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ({"patience": 10}, "patience: there is no setting of this name"),
        ({"handoff": {"digits": "off"}}, "handoff.digits: there is no setting of this name"),
        ({"return": "never"}, 'return: it must be "offer", "auto" or "off"'),
        ({"order": ["ada", 3]}, "order.1: it must be a text, not a whole number"),
        (
            {"agents": {"ada": {}, "bob": {"args": 3}}},
            "agents.bob.args: it must be a list, not a whole number",
        ),
        ({"agents": {"ada": {"modle": "x"}}}, "agents.ada.modle: there is no setting of this name"),
        ({"context": {"act": 300}}, "context.act: it must be at most 100"),
        ({"context": {"act": 1}}, "context: the marks must rise: rearm, advise, draft, act"),
        ({"redaction": {"allow": ["x"]}}, "redaction.allow: a text has at least 4 characters"),
        ({"budgets": [{"tokens": 5}]}, "budgets.0.per: it is missing"),
        ({"budgets": [{"per": "day", "dollars": 0}]}, "budgets.0.dollars: it must be from 0.01 to 1000000"),
        ({"budgets": [{"per": "year", "tokens": 5}]}, 'budgets.0.per: it must be "session" or "day"'),
    ],
)
def test_a_mistake_in_the_configuration_has_its_place(tables: dict[str, object], sentence: str) -> None:
    """Whoever made it looks there, and for nothing else."""
    with pytest.raises(MistakeError) as caught:
        UserConfig.parse(tables)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ({"launch": {}}, "launch.program: it is missing"),
        (
            {"launch": {"program": "ann", "env": {"A": "b", "C": 1}}},
            "launch.env.C: it must be a text, not a whole number",
        ),
        ({"sign_in": "a" * 81}, "sign_in: its length must be at most 80"),
        ({"budget_tokens": 5}, "budget_tokens: it must be at least 500"),
        ({"quit": [{"signal": "SIGTERM", "wait_s": 99}]}, "quit.0.wait_s: it must be at most 30"),
        (
            {"sources": [{"role": "log", "framing": "lines", "path": "x", "names": {"id": "a"}}]},
            'sources.0.names: it must be "native_id" or "transcript"',
        ),
    ],
)
def test_a_mistake_in_an_adapter_has_its_place(tables: dict[str, object], sentence: str) -> None:
    """An adapter that is left out is mended by what is said of it."""
    with pytest.raises(MistakeError) as caught:
        Adapter.parse({**ADAPTER, **tables})
    assert str(caught.value) == sentence


def test_words_that_are_known_are_listed_where_another_stands() -> None:
    """They are not looked up in a page first."""
    feed = {"name": "f", "source": "ear", "text": "t"}
    with pytest.raises(MistakeError, match=r'^feeds\.0\.source: it must be "[a-z-]+", ".*" or "[a-z-]+"$'):
        Rules.parse({"feeds": [feed]})


def test_numbers_in_quotation_marks_are_numbers() -> None:
    """Configurations have them, and nothing else can be meant."""
    assert UserConfig.parse({"patience_s": "300"}).patience_s == 300.0
