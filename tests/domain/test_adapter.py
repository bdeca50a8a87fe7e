"""What is different for some versions of an agent, and which of them an adapter was tried with."""

from agent_relay.domain.documents.adapter import Adapter

TABLES: dict[str, object] = {
    "name": "zed",
    "title": "Zed",
    "launch": {"program": "zed", "args": ["--old"], "fresh_args": ["--new-session"]},
    "deliver": {"packet_by": "paste", "opening": "Go on."},
    "quit": [{"keys": "q", "wait_s": 1}],
    "versions": [
        {"from": "2.0", "launch": {"args": ["--new"]}, "quit": [{"signal": "SIGTERM", "wait_s": 2}]},
        {"from": "2.5", "before": "3.0", "launch": {"args": ["--newer"]}},
    ],
}


def test_a_range_replaces_what_it_names_and_nothing_else() -> None:
    """A key of another version at a start is an agent that does not start."""
    adapter = Adapter.parse(TABLES)
    told = {version: adapter.fit(version) for version in ("1.9", "2.0", "2.6", "3.0")}
    assert {version: fitted.launch.args for version, fitted in told.items()} == {
        "1.9": ("--old",),
        "2.0": ("--new",),
        "2.6": ("--newer",),
        "3.0": ("--new",),
    }
    assert [step.signal for step in told["2.0"].quit] == ["SIGTERM"]
    assert [step.keys for step in told["1.9"].quit] == ["q"]
    assert told["2.6"].launch.fresh_args == ("--new-session",)


def test_a_version_nobody_knows_changes_nothing() -> None:
    """A wrapper on the PATH tells no version; what the adapter says of all of them holds."""
    adapter = Adapter.parse(TABLES)
    assert adapter.fit("") == adapter


def test_an_adapter_of_an_earlier_release_still_names_its_one_version() -> None:
    """People wrote theirs with the key there was."""
    adapter = Adapter.parse({**TABLES, "tested_version": "1.2.3"})
    assert (adapter.tested_versions, adapter.newest_tested) == (("1.2.3",), "1.2.3")
    newer = Adapter.parse({**TABLES, "tested_versions": ["1.10", "1.9"]})
    assert newer.newest_tested == "1.10"


def test_settings_that_never_had_an_effect_are_passed_over() -> None:
    """A user's adapter that still has them must not be left out for that."""
    assert Adapter.parse({**TABLES, "letter": "z", "terminal_reset": "\x1b[0m"}) == Adapter.parse(TABLES)
