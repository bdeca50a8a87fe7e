"""What no longer holds says so: found by the edited lines themselves, and by words that two prompts share."""

from dataclasses import dataclass

import pytest

from agent_relay.domain.facts import Facts, FileChange, Message
from agent_relay.packet.build import build_packet
from agent_relay.packet.extract.later_changes import LaterChange as Later
from agent_relay.packet.extract.later_changes import find_changed_edits, find_corrections, find_later_words
from tests.session.first_leg import OCCASION


@dataclass(frozen=True)
class Edit:
    """One edit of `path` in a turn: the lines it removed and added."""

    turn: int
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    path: str = "cache.py"


def change(*edits: Edit) -> list[FileChange]:
    """The edits as a record has them."""
    return [
        FileChange(
            one.path,
            "modified" if one.removed else "created",
            one.turn,
            added_lines=one.added,
            removed_lines=one.removed,
        )
        for one in edits
    ]


OLD, NEW, NEWER, OTHER = ("size = 100",), ("size = 200",), ("size = 300",), ("keep = 7",)


def test_an_edit_is_gone_once_none_of_its_lines_is_left() -> None:
    """By the lines alone: nobody has to say that they took it back."""
    rows: list[tuple[list[Edit], list[Later]]] = [
        ([Edit(1, OLD, NEW), Edit(3, NEW, OLD)], [Later(1, 3, "taken back")]),
        ([Edit(1, OLD, NEW), Edit(3, NEW, NEWER)], [Later(1, 3, "replaced")]),
        ([Edit(1, OLD, NEW), Edit(2, NEW, NEWER), Edit(3, NEWER, OLD)],
         [Later(1, 2, "replaced"), Later(2, 3, "replaced")]),
        ([Edit(1, OLD, NEW), Edit(1, NEW, OLD)], [Later(1, 1, "taken back")]),
        ([Edit(1, OLD, NEW), Edit(1, NEW, OLD), Edit(1, OLD, NEWER)], []),
        ([Edit(1, (), ("a", "b"), "new.py"), Edit(4, ("a", "b"), (), "new.py")], [Later(1, 4, "replaced")]),
        ([Edit(1, OLD, NEW), Edit(3, NEW, OLD, "other.py")], []),
        ([Edit(1, OLD, (*NEW, *OTHER)), Edit(3, NEW, OLD)], []),
        ([Edit(1, OLD, (*NEW, *OTHER)), Edit(3, NEW, OLD), Edit(5, OTHER, ())], [Later(1, 5, "replaced")]),
        ([Edit(1, OLD, NEW), Edit(3, NEW, (*NEW, *OTHER))], []),
        ([Edit(1, OLD, NEW)], []),
        ([Edit(1, OLD, NEW), Edit(3, OLD, NEW)], []),
        ([], []),
    ]  # fmt: skip
    assert [(edits, find_changed_edits(change(*edits))) for edits, _ in rows] == rows


def talk(*prompts: str) -> list[Message]:
    """What the user said, a prompt a turn."""
    return [Message("user", text, turn) for turn, text in enumerate(prompts, 1)]


def test_an_undone_edit_is_told_at_both_ends() -> None:
    """Whoever reads the first must not build on it, and whoever reads the second must know what went."""
    said = []
    for message in talk(
        "raise the size of the cache to 200", "how is it?", "no, that eats memory. put it back"
    ):
        said += [message, Message("assistant", "Done.", message.turn)]
    facts = Facts(
        "alpha", conversation=tuple(said), files=tuple(change(Edit(1, OLD, NEW), Edit(3, NEW, OLD)))
    )
    packet = build_packet(facts, OCCASION)
    first, last = packet.exchanges[0], packet.exchanges[-1]
    assert (first.ended_in, first.ended_how, first.is_settled) == (3, "taken back", False)
    assert first.ended_by == "no, that eats memory. put it back"
    assert (last.took_back, last.is_settled, last.ended_in) == (1, True, None)
    assert [one.summary for one in packet.decisions] == ["no, that eats memory. put it back"]


@pytest.mark.parametrize("leave", ["yes", "ja mach", "genau so"])
def test_a_choice_replaced_by_an_accepted_proposal_is_not_settled(leave: str) -> None:
    """What the agent proposed and the user accepted holds, and not the number from before."""
    said = [
        Message("user", "raise the size of the cache to 200", 1),
        Message("assistant", "With 200 it swaps. Shall I take 300?", 1),
        Message("user", leave, 2),
        Message("assistant", "Done.", 2),
    ]
    edits = change(Edit(1, OLD, NEW), Edit(2, NEW, NEWER))
    packet = build_packet(Facts("alpha", conversation=tuple(said), files=tuple(edits)), OCCASION)
    first = packet.exchanges[0]
    assert (first.ended_in, first.ended_how, first.is_settled) == (2, "replaced", False)


@pytest.mark.parametrize(
    ("prompts", "corrected"),
    [
        (("the tombstones of the importer stay 14 days", "run it",
          "correction: tombstones of the importer stay 30 days"), [(1, 3)]),
        (("Grabsteine im Importer 14 Tage", "los", "Korrektur, Grabsteine im Importer 30 Tage"), [(1, 3)]),
        (("去重窗口是两小时的滑动窗口", "跑一下", "说错了,去重窗口是三天的滑动窗口"), [(1, 3)]),
        (("tombstones of the importer stay 14 days", "i said tombstones of the importer stay 20 days",
          "correction: tombstones of the importer stay 30 days"), [(2, 3)]),
        (("never mind the importer", "tombstones stay"), []),
        (("the tombstones of the importer stay 14 days", "run it", "tombstones of the importer: red"), []),
        (("the tombstones of the importer stay 14 days", "run it", "actually, the door is red"), []),
        (("run the tests", "run the tests", "sorry, run the tests"), []),
        (("correction: tombstones of the importer stay 30 days",), []),
        ((), []),
    ],
    ids=["english", "german", "chinese", "said-by-all", "no-sign", "no-sign-of-it", "nothing-shared",
         "common-words", "alone", "nothing"],
)  # fmt: skip
def test_a_correction_is_of_the_prompt_whose_rare_words_it_shares(
    prompts: tuple[str, ...], corrected: list[tuple[int, int]]
) -> None:
    """A word in many prompts does not show which one is meant: at most, it is the one right before."""
    found = find_corrections(talk(*prompts))
    assert [(one.earlier, one.later) for one in found] == corrected
    assert {one.how for one in found} <= {"corrected"}


def test_the_last_of_several_corrections_counts() -> None:
    """It is what holds."""
    found = find_corrections(
        talk(
            "the importer and its tombstones: 14 days, shown in the sidebar of the dashboard",
            "actually, importer tombstones 30 days",
            "actually, the sidebar of the dashboard is gone",
        )
    )
    assert found == [Later(1, 3, "corrected")]


def test_a_rule_that_was_taken_back_says_so_among_the_rules() -> None:
    """It stays in the packet: the successor may find that files still follow it."""
    said = []
    for message in talk(
        "never write tombstones from the importer",
        "run it",
        "scratch that: the importer may write tombstones now",
    ):
        said += [message, Message("assistant", "Ok.", message.turn)]
    packet = build_packet(Facts("alpha", conversation=tuple(said)), OCCASION)
    [rule] = [one for one in packet.constraints if one.text.startswith("never")]
    assert rule.ended_in == 3
    assert rule.text not in [one.summary for one in packet.decisions]


@pytest.mark.timeout(60)
def test_endings_are_found_in_bounded_time() -> None:
    """One forged turn with a megabyte of lines must not delay a packet."""
    lines = tuple(f"line {number}" for number in range(100_000))
    found = find_changed_edits(
        change(Edit(1, (), lines), Edit(2, lines, ()), *(Edit(3, (), (f"{n}",)) for n in range(2000)))
    )
    assert found == [Later(1, 2, "replaced")]
    assert find_corrections(talk("importer " * 200_000, "actually " * 200_000)) == []


@pytest.mark.size("every")
@pytest.mark.timeout(60)
def test_endings_of_many_turns_are_found_in_bounded_time() -> None:
    """Ten thousand turns, in each of which a brace moves and the user corrects something."""
    count = 10_000
    edits = (Edit(turn, ("}", f"a{turn}"), ("{", "}", f"a{turn + 1}")) for turn in range(count))
    assert len(find_changed_edits(change(*edits))) < count
    prompts = talk(*(f"correction of word{turn} and other{turn // 2}" for turn in range(count)))
    assert len(find_corrections(prompts)) < count
    assert len(find_later_words(prompts)) < count
