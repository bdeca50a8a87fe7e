"""A packet fits its target's budget, gives way in order, and says what it left out."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import build_renderer, load_adapter
from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.packet._cuts import shorten
from agent_relay.packet.budget import estimate_tokens, fit_packet
from tests.support.sizes import sized

SOURCE = {"agent": "alpha", "transcript": "/t/alpha.jsonl", "turn": 1}


def build(**more: object) -> ResumePacket:
    """A packet with these fields."""
    return ResumePacket.model_validate(
        {
            "packet_id": "P",
            "session_id": "S",
            "sequence": 1,
            "created_at": datetime(2026, 1, 1, tzinfo=UTC),
            "previous_agent": "alpha",
            "target_agent": "beta",
            "checkpoint_reason": "manual",
            **more,
        }
    )


def full(count: int = 30, size: int = 400) -> ResumePacket:
    """A packet with plenty of everything."""
    words = "lorem ipsum " * (size // 12)
    texts = [f"{n} {words}" for n in range(count)]
    each = [{"summary": text, "source": SOURCE} for text in texts]
    return build(
        task="do the task " * 20,
        task_source=SOURCE,
        next_task="take the next step",
        unprocessed_prompt={"text": "and now this", "source": SOURCE},
        constraints=[{"text": f"rule {n}", "source": SOURCE} for n in range(5)],
        exchanges=[
            {"said": text, "on": words, "told": words, "weight": n % 7, "source": SOURCE}
            for n, text in enumerate(texts)
        ],
        decisions=[{"id": str(n), **one, "why": words} for n, one in enumerate(each)],
        attempts=[{**one, "outcome": words} for one in each],
        blockers=[{"id": str(n), **one, "evidence": words} for n, one in enumerate(each[:6])],
        plan=[{"text": text, "status": "completed" if n % 2 else "pending"} for n, text in enumerate(texts)],
        touched_files=[
            {"path": f"src/{n}.py", "status": ("read", "modified", "untracked")[n % 3]}
            for n in range(count * 3)
        ],
        validation_runs=[{"kind": "tests", "command": "make", "output_tail": words * 4} for _ in range(8)],
        recent_turns=[{"role": "user", "text": text * 5, "source": SOURCE} for text in texts],
        background=[{"kind": "shell", "text": words} for _ in range(5)],
        lineage=[{"agent": "alpha"} for _ in range(10)],
        narrative=words * 10,
    )


show = build_renderer(load_adapter(f"{find_builtin_folder()}/codex"), "")


def cut_sections(packet: ResumePacket) -> set[str]:
    """The sections something was cut of, whole entries or characters."""
    return {cut.section.removesuffix(" text") for cut in packet.cuts}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("word " * 6, 10), ("日本語", 5), ("a" * 3 + "é", 3)],
)
def test_the_estimate_is_by_script(text: str, tokens: int) -> None:
    """Three ASCII characters a token, three tokens for two others: rather too many than too few."""
    assert estimate_tokens(text) == tokens


def test_what_fits_is_not_touched() -> None:
    """No cut without need."""
    packet = full()
    assert fit_packet(packet, tokens=1_000_000, render=show, aim=1_000_000) is packet


def test_what_can_be_spared_goes_before_the_budget_asks() -> None:
    """A short packet is read with care; nothing of the user's own words is given for it."""
    packet = full()
    fitted = fit_packet(packet, tokens=1_000_000, render=show)
    assert (fitted.task, fitted.unprocessed_prompt) == (packet.task, packet.unprocessed_prompt)
    assert fitted.constraints == packet.constraints
    assert not {"task", "unprocessed_prompt", "next_task", "blockers"} & cut_sections(fitted)
    assert {"recent_turns", "touched_files read", "validation_runs"} <= cut_sections(fitted)


def test_exchanges_that_would_be_missed_most_stay() -> None:
    """Of those that go first, the lightest go, whenever they were."""
    packet = full()
    fitted = fit_packet(packet, tokens=30_000, render=show, aim=1_000_000)
    left = [one.weight for one in fitted.exchanges]
    assert 8 <= len(left) < len(packet.exchanges)
    gone = [one.weight for one in packet.exchanges if one not in fitted.exchanges]
    assert max(gone) <= min(left)


@pytest.mark.size("every")
@pytest.mark.parametrize("tokens", sized([40_000, 30_000, 15_000, 6_000, 3_000, 1_500], [3_000]))
def test_the_text_fits_its_budget(tokens: int) -> None:
    """The reason there is a budget at all."""
    assert estimate_tokens(show(full())) > 40_000
    assert estimate_tokens(show(fit_packet(full(), tokens=tokens, render=show))) <= tokens


@pytest.mark.size("every")
def test_sections_give_way_in_the_declared_order() -> None:
    """The less room, the more sections are named; the user's own words last."""
    seen: list[set[str]] = [
        cut_sections(fit_packet(full(), tokens=t, render=show, aim=1_000_000))
        for t in range(58_000, 2_000, -3_000)
    ]
    assert all(before <= after for before, after in pairwise(seen))
    first = next(sections for sections in seen if sections)
    assert first == {"exchanges"}
    last = {"task", "unprocessed_prompt", "next_task", "constraints"}
    assert not last & seen[-1]


def test_task_next_step_rules_and_prompt_survive_a_small_budget() -> None:
    """A successor that knows only these can still go on."""
    fitted = fit_packet(full(), tokens=1400, render=show)
    assert fitted.task == "do the task " * 20
    assert fitted.next_task == "take the next step"
    assert [quote.text for quote in fitted.constraints] == [f"rule {n}" for n in range(5)]
    assert fitted.unprocessed_prompt is not None
    assert fitted.unprocessed_prompt.text == "and now this"


def test_a_huge_task_and_prompt_are_cut_in_the_middle_and_say_so() -> None:
    """Last of all, never silently, with where the whole of it stands."""
    packet = build(
        task="BEGIN " + "x " * 50_000 + " END",
        task_source=SOURCE,
        unprocessed_prompt={"text": "START " + "y " * 500_000 + " STOP", "source": SOURCE},
    )
    fitted = fit_packet(packet, tokens=1000, render=show)
    assert estimate_tokens(show(fitted)) <= 1000
    assert fitted.task is not None
    assert fitted.task.startswith("BEGIN ")
    assert fitted.task.endswith(" END")
    assert "characters left out" in fitted.task
    assert fitted.unprocessed_prompt is not None
    assert fitted.unprocessed_prompt.text.startswith("START ")
    assert {cut.section: cut.path for cut in fitted.cuts} == {
        "task text": "/t/alpha.jsonl",
        "unprocessed_prompt text": "/t/alpha.jsonl",
    }


def test_cuts_count_what_is_gone() -> None:
    """The number in the text is the number that is missing."""
    packet = full()
    fitted = fit_packet(packet, tokens=12_000, render=show)
    omitted = {cut.section: cut.omitted for cut in fitted.cuts}
    assert omitted["recent_turns"] == len(packet.recent_turns) - len(fitted.recent_turns)
    assert omitted["attempts"] == len(packet.attempts) - len(fitted.attempts)
    assert fitted.recent_turns == () or fitted.recent_turns[-1].text.startswith("29 ")
    assert next(cut.path for cut in fitted.cuts if cut.section == "recent_turns") == "/t/alpha.jsonl"


def test_no_more_is_cut_than_needed() -> None:
    """A hundred tokens too many cost about a hundred tokens, not the section."""
    packet = build(touched_files=[{"path": f"folder/{n:04}.py", "status": "read"} for n in range(200)])
    whole = estimate_tokens(show(packet))
    fitted = fit_packet(packet, tokens=whole - 100, render=show)
    assert 170 <= len(fitted.touched_files) < 200
    assert estimate_tokens(show(fitted)) > whole - 160


def test_fitting_what_was_fitted_changes_nothing() -> None:
    """A packet rendered again after an edit is not cut again."""
    fitted = fit_packet(full(), tokens=8_000, render=show)
    assert fit_packet(fitted, tokens=8_000, render=show) == fitted


@pytest.mark.size("every")
@settings(max_examples=15)
@given(st.integers(0, 40), st.integers(12, 900), st.integers(1_500, 40_000))
def test_any_packet_fits_any_sensible_budget(count: int, size: int, tokens: int) -> None:
    """Whatever is big in it."""
    assert estimate_tokens(show(fit_packet(full(count, size), tokens=tokens, render=show))) <= tokens


def test_where_nothing_fits_the_least_that_makes_sense_is_left() -> None:
    """A tiny budget must not end in an empty page: task, next step and rules stay, cut short."""
    packet = fit_packet(full(), tokens=1, render=show)
    assert packet.task is not None
    assert packet.task.startswith("do the")
    assert len(packet.constraints) == 5
    assert (packet.recent_turns, packet.decisions, packet.lineage[:-2]) == ((), (), ())


def test_only_what_is_too_long_is_shortened() -> None:
    """One giant entry must not cost its neighbours their words."""
    turns = [{"role": "user", "text": "short"}, {"role": "assistant", "text": "word " * 4000}]
    packet = fit_packet(build(recent_turns=turns), tokens=1500, render=show)
    assert [turn.text == "short" for turn in packet.recent_turns] == [True, False]


def test_expectations_give_way_after_decisions_were_thinned() -> None:
    """They are a contract, but the successor can ask for them; they are named as cut."""
    packet = fit_packet(
        full().model_copy(update={"expectations": {"text": "e " * 50}}), tokens=1, render=show
    )
    assert packet.expectations is None
    assert "expectations" in cut_sections(packet)


def test_a_middle_shorter_than_its_mark_is_left_in() -> None:
    """Saying that ten characters are missing takes thirty."""
    packet = build(recent_turns=[{"role": "user", "text": "u" * 400}])
    step = shorten("recent_turns", "text", to=100)
    assert step.most(packet) == 300
    assert step.cut(packet, 10) is packet
    assert shorten("recent_turns", "text", to=380).most(packet) == 0
