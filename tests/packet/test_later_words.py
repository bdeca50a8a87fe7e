"""A rule that later words seem to change says where to look; an interrupted prompt says so, too."""

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import build_renderer, load_adapter
from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.facts import Facts, Message
from agent_relay.packet.build import build_packet
from agent_relay.packet.extract.later_changes import find_later_words
from agent_relay.packet.extract.sentences import plain_apostrophes
from tests.session.first_leg import OCCASION


def talk(*prompts: str) -> list[Message]:
    """What the user said, a prompt a turn."""
    return [Message("user", text, turn) for turn, text in enumerate(prompts, 1)]


def render(packet: ResumePacket) -> str:
    """The packet as a built-in adapter shows it."""
    return build_renderer(load_adapter(f"{find_builtin_folder()}/codex"), "/r/.agent-relay/sessions/S")(
        packet
    )


LOOSELY = {
    "en-opposed": ("American spelling throughout", "by the way, spelling is British, not American."),
    "en-sorry": ("remove the old reports app", "sorry, reports app please keep as it is."),
    "de": ("immer Karten mit Breitengrad speichern", "Karten mit Breitengrad doch nicht"),
    "es": ("elimine el conector de Radiología", "Le pido disculpas: el conector de Radiología se queda."),
    "fr": ("toujours exporter les courbes en viridis", "pour les courbes, plutôt que viridis prenez cividis"),
    "pt": ("guarde sempre o intervalo do GPS", "o intervalo do GPS não é mais fixo, foi mal"),
    "zh": ("规则: seed 固定 42, 不许用 test set", "改规则: seed 不是一个, 跑 3 个"),
    "ja": ("消費税の端数は必ず四捨五入で", "すみません、消費税の端数は切り捨てでした"),
}  # fmt: skip


@pytest.mark.parametrize("language", LOOSELY)
def test_a_later_sentence_that_seems_to_change_a_rule_is_pointed_at(language: str) -> None:
    """Too little is shared to say that it does: a reader who sees both can tell."""
    rule, later = LOOSELY[language]
    [found] = find_later_words(talk(rule, "run it", f"Good. {later}"))
    assert (found.earlier, found.later) == (1, 3)
    assert found.words in plain_apostrophes(f"Good. {later}")
    assert any(word in found.words for word in rule.split()) or "端数" in found.words


def test_nothing_is_pointed_at_where_little_is_shared() -> None:
    """Readers soon ignore a mark that is seldom right."""
    rows: list[tuple[str, ...]] = [
        ("der account ist nicht mehr da", "weiter", "die deadline stimmt nicht mehr: mittwoch"),
        ("never promise a date, say folder", "run it", "the folder is fine, show me the pages"),
        ("keep the tombstones of the importer", "run it", "sorry, the door is red"),
        ("keep it please", "run it", "sorry, one moment please"),
        ("the tombstones stay", "tombstones?", "tombstones.", "tombstones!", "sorry, tombstones of importer"),
        ("sorry, importer tombstones stay",),
        (),
    ]  # fmt: skip
    assert [prompts for prompts in rows if find_later_words(talk(*prompts)) != []] == []


def test_a_rule_says_where_to_look_for_what_changed_it() -> None:
    """Among the rules, and in the ledger where it still counts as settled."""
    said = []
    for message in talk(
        "clean up the settings", "never delete the reports app from them", "actually the reports app can go"
    ):
        said += [message, Message("assistant", "Ok.", message.turn)]
    packet = build_packet(Facts("alpha", conversation=tuple(said)), OCCASION)
    [rule] = [one for one in packet.constraints if one.text.startswith("never")]
    assert (rule.revisited_in, rule.revisited_by, rule.ended_in) == (
        3,
        "actually the reports app can go",
        None,
    )
    assert "see turn 3: actually the reports app can go" in render(packet)


def test_a_prompt_interrupted_before_any_answer_is_not_shown_as_done() -> None:
    """The user typed the next one at once, and a limit came: both wait for an answer."""
    said = [
        Message("user", "make the header 16 mm, always", 1),
        Message("assistant", "It is 16 mm.", 1),
        Message("user", "14 mm then, and remove the buildpack but never the gem", 2),
        Message("user", "and I deploy myself", 3),
    ]
    facts = Facts("alpha", conversation=tuple(said), unprocessed_prompt=said[-1], interrupted_turns=(2,))
    packet = build_packet(facts, OCCASION)
    assert [one.is_broken_off for one in packet.exchanges if one.source and one.source.turn == 2] == [True]
    text = render(packet)
    assert "(turn 2, interrupted before any answer)" in text
    assert "Answer the waiting prompt below; the prompt of turn 2 got no answer either." in text
