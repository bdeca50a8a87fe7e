from agent_relay.detect.screen_state import AgentState, believe_state, read_input, read_state
from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.screen import Row, Screen

RULES = Rules.parse(
    {
        "states": [
            {"id": "menu", "state": "asking", "pattern": "^> 1", "rows": 3, "unless": "quoted"},
            {"id": "file", "state": "asking", "source": "state-file", "where": {"equals": {"status": "w"}}},
            {"id": "title", "state": "busy", "source": "title", "pattern": "^work"},
            {"id": "said", "state": "ready", "source": "terminal", "pattern": "idle", "unless": "not idle"},
            {"id": "none", "state": "ready", "source": "title", "pattern": ""},
            {"id": "prompt", "state": "ready", "pattern": "^>"},
        ],
        "input": {"row": r"^[>.] ?(?P<typed>.*)$", "hint": "Type here", "hint_colours": ["palette:8"]},
    }
)
TOLD = Rules.parse(
    {
        "progress": [
            {"source": "transcript", "where": {}, "means": "answer"},
            {"source": "transcript", "where": {"equals": {"type": "prompt"}}, "means": "prompt"},
        ]
    }
)
ANCHORED = Rules.parse(
    {"input": {"row": r"^\|(?P<typed>.*)$", "anchor": "^=+", "rows": 3, "hint": "model .*"}}
)


def show(*rows: str, title: str = "", agent_state: str = "") -> Screen:
    return Screen(tuple(Row(text) for text in rows), 40, title=title, agent_state=agent_state)


def test_the_first_sign_that_matches_is_the_state() -> None:
    """Dialogs come before prompts, because a prompt may still be painted under a dialog."""
    rows: list[tuple[Screen, dict[str, object] | None, str]] = [
        (show("text", "> 1. yes", "  2. no"), None, "asking"),
        (show("> 1. yes", "a", "b", "c"), None, "ready"),
        (show("> 1. yes", "quoted"), None, "ready"),
        (show("text"), {"status": "w"}, "asking"),
        (show("text"), {"status": "x"}, "unknown"),
        (show("text", title="working"), None, "busy"),
        (show("text", agent_state="state=idle"), None, "ready"),
        (show("text", agent_state="not idle"), None, "unknown"),
        (show(">"), None, "ready"),
        (show(), None, "unknown"),
    ]
    assert [
        (screen, record, read_state(RULES, screen, state_record=record)) for screen, record, _ in rows
    ] == rows


def test_the_last_input_row_is_empty_or_typed() -> None:
    """What a person has half typed is theirs."""
    rows: list[tuple[list[str], str]] = [
        (["text"], "hidden"),
        (["> old prompt", "> "], "empty"),
        (["> half a"], "typed"),
        (["> Type here"], "empty"),
        (["> Type here and there"], "typed"),
    ]
    assert [(rows, read_input(RULES, show(*rows))) for rows, _ in rows] == rows


def test_a_hint_can_be_known_by_its_colour() -> None:
    """Placeholders change with every version; their dimness does not."""
    screen = Screen((Row("> Ask me anything", color="palette:8"),), 40)
    assert read_input(RULES, screen) == "empty"


def test_an_input_box_is_read_above_its_frame() -> None:
    """Boxes look like the messages above them; only the rows next to the last frame are the input."""
    rows: list[tuple[list[str], str]] = [
        (["| text", "===", "| old"], "typed"),
        (["| old", "", "|", "|", "| model x", "==="], "empty"),
        (["|", "| typed", "|", "| model x", "==="], "typed"),
        (["| too far above", "|", "|", "|", "==="], "empty"),
        (["no box"], "hidden"),
        (["no box", "==="], "hidden"),
    ]
    assert [(rows, read_input(ANCHORED, show(*rows))) for rows, _ in rows] == rows


def test_an_agent_without_an_input_line_hides_it() -> None:
    """Then nothing is known about half-typed lines."""
    assert read_input(Rules(), show("> text")) == "hidden"


def test_a_new_agent_that_announces_its_state_is_not_believed_by_its_prompt_alone() -> None:
    """A return typed into the question that comes up over that prompt would trust a folder for the user."""
    rules = Rules.parse({"states": [{"id": "prompt", "state": "ready", "pattern": "^>", "announced": True}]})
    assert read_state(rules, show(">"), is_new=True) == "unknown"
    assert read_state(rules, show(">", agent_state="state=error"), is_new=True) == "ready"
    assert read_state(rules, show(">"), is_new=False) == "ready"


def test_an_agent_that_is_busy_before_its_first_turn_is_starting() -> None:
    """Codex works while its tool servers start: taken for a turn, the task was never given."""
    rows: list[tuple[Rules, AgentState, bool, str]] = [
        (TOLD, "busy", False, "starting"),
        (TOLD, "busy", True, "busy"),
        (TOLD, "ready", False, "ready"),
        (RULES, "busy", False, "busy"),
    ]
    assert [
        (rules, state, had_turns, believe_state(rules, state, had_turns=had_turns))
        for rules, state, had_turns, _ in rows
    ] == rows
