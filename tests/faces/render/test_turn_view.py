"""A turn on a terminal: tools, changes, plans, thoughts, and what relay has to say."""

import json

from tests.faces.render.views import Written, answer, call, say, show


def test_a_call_is_one_line_with_the_first_lines_of_its_result() -> None:
    """What matters is that it was done; the transcript has the rest."""
    shown = show(
        call("Bash", '{"description":"Count","command":"seq\\n 9"}'),
        answer("\n".join(str(number) for number in range(1, 10))),
        call("Read", '{"file_path":"calc.py"}', "c2"),
        answer("no such file\n", "c2", is_error=True),
    )
    assert shown == (
        "● Bash seq 9\n  │ 1\n  │ 2\n  │ 3\n  │ 4\n  │ 5\n  … 4 lines more\n"
        "● Read calc.py\n  │ no such file\n"
    )


def test_a_call_says_the_part_of_its_input_that_tells_most() -> None:
    """Agents name it differently, send no JSON, or more than is told."""
    rows = [
        ("python3 calc.py", "● t python3 calc.py\n"),
        ('{"id":"i","changes":[{"path":"a.py"},{"path":"b.py"},7]}', "● t a.py, b.py\n"),
        ('{"odd":"words","n":1}', "● t words\n"),
        ('{"n":1}', "● t\n"),
        ('{"file_path":"calc.py","content":"' + "x" * 4000, "● t calc.py\n"),
        ("[1]", "● t [1]\n"),
        ('{"command":"' + "x" * 99 + '"}', "● t " + "x" * 35 + "…\n"),
        ('{"command":"\\u001b[31mrm\\nx"}', "● t rm x\n"),
    ]
    assert [(given, show(call("t", given), columns=40)) for given, _ in rows] == rows


def test_of_calls_at_once_each_result_says_whose_it_is() -> None:
    """Two results in a row would be taken for those of the last call."""
    shown = show(call("a", "x", "c1"), call("b", "y", "c2"), answer("from a", "c1"), answer("from b", "c2"))
    assert shown == "● a x\n● b y\n↳ a x\n  │ from a\n↳ b y\n  │ from b\n"


def test_a_change_is_shown_as_a_diff_instead_of_the_tools_words() -> None:
    """The diff says what "has been updated" does not; a change that failed says so all the same."""
    diff = "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    a\n+    b"
    edit = {"type": "edit", "call": "c1", "path": "calc.py", "diff": diff}
    given = '{"file_path":"calc.py"}'
    assert show(call("Edit", given), edit, answer("updated")) == (
        "● Edit calc.py\n  @@ -1,2 +1,2 @@\n   def add(a, b):\n  -    a\n  +    b\n"
    )
    failed = show(call("Edit", given), edit, answer("not found", is_error=True))
    assert failed.endswith("  │ not found\n")
    coloured = show(edit, is_colour=True)
    assert "\x1b[31m  -    a\x1b[0m\n\x1b[32m  +    b\x1b[0m\n" in coloured
    assert show({**edit, "diff": "\n".join(["+x"] * 50)}).endswith("  +x\n  … 10 lines more\n")
    assert show({**edit, "diff": ""}) == ""


def test_a_plan_is_a_list_to_tick_off() -> None:
    """Whole once; afterwards whatever changed."""
    made = [{"id": str(n), "text": text, "status": "pending"} for n, text in enumerate(("a", "b"), 1)]
    plan = {"type": "plan", "whole": True, "steps": made}
    later = {"type": "plan", "whole": False, "steps": [{"id": "1", "status": "done"}]}
    assert show(plan, plan, later) == "  ○ a\n  ○ b\n  ✔ a\n"
    ticked = {"type": "plan", "whole": True, "steps": [{"text": "a", "status": "doing"}]}
    dropped = {"type": "plan", "whole": True, "steps": [{"text": "a", "status": "dropped"}]}
    assert show(ticked, dropped) == "  ▸ a\n  ✗ a\n"
    silent = show(call("TaskCreate", "{}", about="plan"), answer("Task #1 created"), later)
    assert silent == "  ✔ 1\n"


def test_thoughts_are_dim_and_few() -> None:
    """They are read while one waits, and nobody reads a hundred lines of them."""
    thought = {"type": "thought", "text": "**Look**\n\nat the file", "more": False}
    assert show(thought, say("Now.")) == "~ Look\n~ at the file\n\nNow.\n"
    assert "\x1b[2;3m~ Look\x1b[0m\n" in show(thought, is_colour=True)
    pieces = [{"type": "thought", "text": f"{n}\n" * 4, "more": True} for n in range(5)]
    assert show(*pieces, say("Now.")).splitlines()[11:] == ["~ 2", "~ … 8 lines more", "", "Now."]


def test_relays_own_words_stand_apart() -> None:
    """Who works on, and why the turn ended: never mixed up with what an agent says."""
    shown = show(
        say("I try.", more=True),
        {"type": "handoff", "message": "→ ann hit its session limit. Continuing with bob."},
        {"type": "handoff-failed", "why": "no model"},
        say("I go on."),
        {"type": "usage", "tokens": {"input": 7, "output": 1200}, "cost": 0.0134},
        {"type": "end", "outcome": "done", "agent": "bob"},
    )
    assert shown == (
        "I try.\n\n→ ann hit its session limit. Continuing with bob.\n→ no model\n\nI go on.\n\n"
        "1,200 tokens out · $0.0134\n"
    )


def test_a_turn_that_is_not_done_says_why() -> None:
    """The last line of a turn is the one people read."""
    rows = [
        ({"outcome": "failed", "agent": "ann", "why": "no\x1b[1m model"}, "→ ann failed: no model\n"),
        (
            {"outcome": "failed", "agent": "ann", "why": "signed out.", "hint": "Sign in: ann login"},
            "→ ann failed: signed out. Sign in: ann login\n",
        ),
        ({"outcome": "stopped", "agent": "ann", "why": ""}, "→ ann was stopped: it gave no reason\n"),
        ({"outcome": "stopped", "agent": "ann", "why": "stopped by hand"}, "→ ann was stopped by hand\n"),
        ({"outcome": "resting", "message": "Nobody can work."}, "Nobody can work.\n"),
        ({"outcome": "resting", "why": "all rest"}, "→ all rest\n"),
    ]
    assert [(event, show({"type": "end", **event})) for event, _ in rows] == rows


def test_a_warning_is_told_and_a_limit_only_by_what_follows_it() -> None:
    """A limit's handoff or end says it in one sentence."""
    warning = {"type": "signal", "scope": "warning", "agent": "ann", "text": "92 % used"}
    assert show(warning, {**warning, "scope": "account"}) == "→ ann: 92 % used\n"


def test_each_turn_begins_with_its_prompt() -> None:
    """A prompt that waited in the queue is far above when its turn comes."""
    written = Written()
    written.view.begin("ann", "fix it\nplease\nnow\nor later\n")
    written.view.show(say("Done."))
    written.view.end()
    written.view.begin("bob", "thanks")
    written.view.end()
    assert written.text == "ann > fix it\nplease\nnow\n  … 1 more\n\nDone.\n\nbob > thanks\n"


def test_events_of_a_later_version_and_odd_ones_show_nothing() -> None:
    """A newer daemon may tell more."""
    odd = [{"type": "new"}, {}, {"type": "text", "text": 7}, {"type": "plan", "steps": 3}, {"type": "result"}]
    assert show(*odd, {"type": "usage", "tokens": 3, "cost": "x"}, {"type": "end", "outcome": "done"}) == ""


def test_a_narrow_terminal_gets_lines_that_fit() -> None:
    """What wraps looks like two lines of output."""
    wide = json.dumps({"command": "漢" * 40})
    shown = show(call("t", wide), answer("漢" * 40), columns=24)
    assert shown == "● t " + "漢" * 9 + "…\n  │ " + "漢" * 9 + "…\n"


def test_of_a_pasted_prompt_only_the_beginning_is_repeated() -> None:
    """Whoever pastes a log of five megabytes does not want it back."""
    written = Written(columns=40)
    written.view.begin("ann", "x" * 5_000_000 + "\n" + "y" * 5_000_000)
    written.view.end()
    assert written.text == f"ann > {'x' * 119}…\n{'y' * 119}…\n"
