"""What `status` says about a session in its last column: the one thing its user should know."""

from agent_relay.faces.cli.session.status import list_columns

NEAR = {"agent": "ann", "until": "", "text": "92% used"}
STARTING = {"agent": "bob", "leg": "L2", "state": "starting"}
REFUSED = {"agent": "ann", "text": "Invalid API key"}
RAW = {"agent": "ann", "text": '{"error":{"code":400,"message":"API key not valid."}}'}
EMPTY = {"context": None, "refused": None, "near": None, "offered": "", "why": "", "lacks": ""}
VIEW = {"state": "busy", "agent": "ann", "since": "2026-11-21T18:20:00+00:00", "session": "S"}


def test_the_last_column_tells_what_matters_most() -> None:
    """A refused agent does nothing until its user acts; everything else can wait for a moment."""
    rows: list[tuple[dict[str, object], str]] = [
        ({}, ""),
        ({"why": "all rest"}, "all rest"),
        ({"lacks": "no transcript"}, "its packet is incomplete: no transcript"),
        ({"lacks": "no transcript", "why": "all rest"}, "all rest"),
        ({"offered": "bob"}, "bob is available again: agent-relay bob"),
        ({"offered": "ann"}, "ann can have its own model again: press Ctrl-] and type /use ann"),
        (
            {"offered": "bob", "return": {"agent": "bob", "by_itself": True, "why": "", "until": ""}},
            "bob is available again and takes over at the end of this turn",
        ),
        (
            {"return": {"agent": "bob", "by_itself": False, "why": "it reads full again", "until": ""}},
            "bob does not take over again: it reads full again",
        ),
        ({"offered": "bob", "near": NEAR}, "near limit: 92% used"),
        ({"near": NEAR, "next_agent": "bob", "standby": STARTING}, "near limit: 92% used; then bob"),
        (
            {"near": NEAR, "next_agent": "bob", "standby": STARTING | {"state": "ready"}},
            "near limit: 92% used; then bob, which is started and ready",
        ),
        ({"offered": "bob", "near": NEAR, "state": "resting"}, ""),
        ({"near": NEAR, "refused": REFUSED}, "signed out, or its key refused: Invalid API key"),
        (
            {"state": "ended", "why": "all rest", "owed": "bob", "leg": "L1"},
            "all rest; its packet waits: agent-relay bob --session S",
        ),
        ({"state": "ended", "owed": "bob", "leg": ""}, "its packet waits: agent-relay bob --session S"),
        ({"refused": RAW}, "signed out, or its key refused: API key not valid."),
    ]
    nothing = EMPTY | {"task": "fix it", "title": "fix it"} | VIEW
    assert [(known, list_columns(nothing | known)[-1]) for known, _ in rows] == rows


def test_a_session_is_shown_by_its_title() -> None:
    """An id tells nobody what was being done; where nothing was asked, that is told."""
    for title, state, shown in (
        ("fix it", "busy", "fix it"),
        ("", "busy", "(no prompt seen)"),
        ("", "unreadable", "-"),
        ("", "gone", "-"),
    ):
        assert list_columns(EMPTY | VIEW | {"title": title, "state": state})[4] == shown
