"""How adapter data becomes a process: arguments, environment, whose keys go where."""

import msgspec
import pytest

from agent_relay.agents.launch import build_headless, build_launch
from agent_relay.agents.user_choices import chooses_session, find_effort
from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.errors import ConfigurationError


def make(**launch: object) -> Adapter:
    return Adapter.parse(
        {
            "name": "ann",
            "title": "Ann",
            "keys": ["ANN_KEY", "SHARED_KEY"],
            "launch": {"program": "ann", **launch},
            "deliver": {"packet_by": "paste", "opening": "Go on."},
            "quit": [{"signal": "SIGTERM", "wait_s": 1}],
        }
    )


def test_arguments_with_values_are_filled_and_those_without_are_left_out_whole() -> None:
    """A flag must never stand without its value."""
    adapter = make(
        fresh_args=["--session-id", "{native_id}"],
        args=["--no-daemon"],
        model_args=["--model", "{model}"],
        packet_args=["--append", "{packet}"],
    )
    plan = build_launch(
        adapter, "/bin/ann", values={"native_id": "N", "packet": "/p q.md"}, environ={}, extra=("-x", "{y}")
    )
    assert plan.argv == ("/bin/ann", "--session-id", "N", "--no-daemon", "--append", "/p q.md", "-x", "{y}")


@pytest.mark.parametrize(
    ("words", "level"),
    [
        (["--effort", "low"], "low"),
        (["-x", "--effort=high", "y"], "high"),
        (["--effort", "low", "--effort", "high"], "high"),
        (["--effort", "low", "--effort", "max"], ""),
        (["--effort"], ""),
        (["--effort low"], ""),
        ([], ""),
    ],
)
def test_the_level_of_effort_is_read_from_the_users_own_arguments(words: list[str], level: str) -> None:
    """Only what the user typed is their choice: an agent's default is none, and the last word counts."""
    launch = make(
        efforts=["low", "high"],
        effort_words=["--effort {effort}", "--effort={effort}"],
    ).launch
    assert find_effort(launch, words) == level


def test_a_level_that_is_passed_on_is_an_argument() -> None:
    """Before the user's own, which are the last."""
    adapter = make(efforts=["low"], effort_words=["--effort {effort}"])
    plan = build_launch(adapter, "/bin/ann", values={"effort": "low"}, environ={}, extra=("--x",))
    assert plan.argv == ("/bin/ann", "--effort", "low", "--x")
    assert build_launch(adapter, "/bin/ann", values={"effort": ""}, environ={}).argv == ("/bin/ann",)


def test_a_resumed_leg_names_its_native_session_instead_of_a_new_one() -> None:
    """Native resume keeps history and prompt cache."""
    adapter = make(fresh_args=["--session-id", "{native_id}"], resume_args=["resume", "{native_id}"])
    plan = build_launch(adapter, "/bin/ann", values={"native_id": "N"}, environ={}, resumes=True)
    assert plan.argv == ("/bin/ann", "resume", "N")


def test_an_agent_sees_its_own_keys_and_neither_others_nor_ours() -> None:
    """The next vendor must not receive this vendor's key."""
    adapter = make(unset=["ANN_WAITS"], env={"ANN_LOG": "{leg_folder}/log", "ANN_PORT": "{port}"})
    environ = {
        "PATH": "/bin",
        "ANN_KEY": "1",
        "SHARED_KEY": "2",
        "BOB_KEY": "3",
        "ANN_WAITS": "1",
        "AGENT_RELAY_HOME": "/r",
    }
    plan = build_launch(
        adapter,
        "/bin/ann",
        values={"leg_folder": "/l"},
        environ=environ,
        withheld={"BOB_KEY", "SHARED_KEY", "ANN_KEY"},
    )
    assert plan.env == {"PATH": "/bin", "ANN_KEY": "1", "SHARED_KEY": "2", "ANN_LOG": "/l/log"}


def test_an_unknown_placeholder_is_a_configuration_error() -> None:
    """A misspelt adapter must not start an agent with literal braces."""
    with pytest.raises(ConfigurationError, match=r"unknown value \{nativeid\}"):
        build_launch(make(args=["{nativeid}"]), "/bin/ann", values={}, environ={})


@pytest.mark.parametrize(
    ("words", "chosen"),
    [((), False), (("--yolo",), False), (("--resume", "N"), True), (("--resume=N",), True), (("N",), False)],
)
def test_a_user_who_names_a_native_session_gets_that_one(words: tuple[str, ...], *, chosen: bool) -> None:
    """An agent that is told two sessions ends at once with a usage error."""
    assert chooses_session(make(session_flags=["--resume", "-r"]).launch, words) is chosen


def test_a_headless_leg_has_other_words_and_the_agents_own_environment() -> None:
    """What is particular to the screen stays away: its ports, its restarts, sources only it has."""
    adapter = make(
        args=["--no-daemon"],
        model_args=["--model", "{model}"],
        env={"ANN_LOG": "a", "ANN_UI": "full"},
        needs_port=True,
        relaunch_status=99,
    )
    assert build_headless(adapter) is None
    able = Adapter.parse(
        {
            **msgspec.to_builtins(adapter),
            "sources": [
                {"role": "log", "framing": "lines", "path": "/log"},
                {"role": "event", "framing": "sse", "path": "http://127.0.0.1:{port}/"},
            ],
            "headless": {
                "args": ["--print"],
                "env": {"ANN_UI": "none"},
                "keeps": ["log"],
                "names": {"native_id": "id"},
                "says": [{"means": "done"}],
                "quit": [{"signal": "SIGINT", "wait_s": 1}],
            },
        }
    )
    found = build_headless(able)
    assert found is not None
    plan = build_launch(found, "/bin/ann", values={"model": "m"}, environ={})
    assert (plan.argv, plan.env) == (
        ("/bin/ann", "--print", "--model", "m"),
        {"ANN_LOG": "a", "ANN_UI": "none"},
    )
    assert (found.launch.needs_port, found.launch.relaunch_status) == (False, 0)
    assert [(source.role, source.path) for source in found.sources] == [
        ("stream", "{leg_folder}/stream.jsonl"),
        ("log", "/log"),
    ]
    assert found.sources[0].names == {"native_id": "id"}
    assert [step.signal for step in found.quit] == ["SIGINT"]
