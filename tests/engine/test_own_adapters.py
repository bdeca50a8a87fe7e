"""Agents of the user's own making: their templates, ports, names and mistakes."""

import os
from pathlib import Path

import pytest

from agent_relay.agents.adapters import find_program, load_adapter
from agent_relay.agents.agent_versions import note_answer
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.state import State
from tests.support import preloaded
from tests.support.at_work import WorkingWorld, has_taken_over
from tests.support.own_adapters import add_adapter
from tests.support.relay_world import is_daemons, wait_until

pytestmark = pytest.mark.size("every")


def write(path: str, text: str) -> None:
    Path(path).write_text(text, "utf-8")


@pytest.mark.size("test")
def test_a_template_is_rendered_into_the_legs_folder_with_a_port_and_what_the_user_has(
    world: WorkingWorld,
) -> None:
    """Hooks and settings are given per launch, so that nobody's own files are edited."""
    file = '{ name = "set.txt", template = "set.j2", reads = { mine = "{home}/mine" } }'
    folder = add_adapter(world, "own", launch=f"needs_port = true\nfiles = [{file}]\n")
    words = "{{ mine.colour }} {{ port|int > 0 }} {{ password|length > 20 }} {{ hook_command }}"
    write(f"{folder}/set.j2", words)
    write(f"{world.home}/mine", '{"colour": "green"}')
    session = world.begin("own")
    said = Path(world.leg_folder(session), "set.txt").read_text("utf-8").split()
    assert said[:3] == ["green", "True", "True"]
    assert said[-1].endswith("hook.py")


def test_what_cannot_be_started_is_named_and_nothing_of_the_leg_is_left(world: WorkingWorld) -> None:
    """The person who wrote it reads which file is wrong.

    An interpreter that went away looks like an installed agent until it is started; and a name may come from
    a script that is older than the configuration.
    """
    folder = add_adapter(world, "own", launch='files = [{ name = "set.txt", template = "set.j2" }]\n')
    broken = add_adapter(world, "broken", program="broken")
    write(f"{broken}/broken", "#!/nowhere/python\n")
    os.chmod(f"{broken}/broken", 0o700)
    with pytest.raises(RelayError, match=r"the adapter's template .*own/set\.j2 is missing"):
        world.open("own")
    for template in ("{{ 1 +", "{{ cwd.x.y }}"):
        write(f"{folder}/set.j2", template)
        with pytest.raises(RelayError, match=r"the adapter's template .*own/set\.j2 cannot be used"):
            world.open("own")
    with pytest.raises(RelayError, match="cannot be started"):
        world.open("broken")
    with pytest.raises(RelayError, match="there is no agent 'nobody'"):
        world.open("nobody")
    assert os.listdir(world.folders.legs) == []
    assert world.ask("session.list")["sessions"] == []
    assert all(is_daemons(line) for line in world.processes().values())


def test_a_broken_adapter_is_named_at_a_start_and_left_out(world: WorkingWorld) -> None:
    """It is the business of whoever uses it, and nobody else's: agents start, and hand over, without it.

    The file may be right by now; only a daemon that starts again sees that.
    """
    folder = f"{world.folders.config}/adapters/zed"
    os.makedirs(folder)
    write(f"{folder}/adapter.toml", "name = [\n")
    opened = world.open("demo")
    assert str(opened["note"]).startswith(
        f"→ Left out, because its adapter cannot be used: zed ({folder}/adapter"
    )
    session = str(opened["session"])
    world.wait_state(session, State.READY)
    world.run_out(session)
    with pytest.raises(RelayError, match=r"zed/adapter\.toml is not TOML") as refused:
        world.open("zed", new=True)
    assert refused.value.hint == "Once it is mended: agent-relay daemon restart"


def test_an_agent_newer_than_what_was_tried_is_told_once(world: WorkingWorld) -> None:
    """It may word its limits in another way; who starts it should know that, and not at every start."""
    folder = add_adapter(world, "own")
    program = find_program(load_adapter(folder), {})
    assert program is not None
    note_answer(program, "own 0.9.0", world.folders.agent_versions)
    assert world.open("own")["note"] == ""
    note_answer(program, "own 1.10.0", world.folders.agent_versions)
    told = "→ own 1.10.0 is newer than 1.0.0, the newest version agent-relay was tried with"
    assert world.open("own", new=True)["note"] == told
    assert world.open("own", new=True)["note"] == ""


def test_a_ledger_that_cannot_be_read_or_written_stops_no_failover(world: WorkingWorld) -> None:
    """The worst that follows is that an agent is asked once too often; a deaf session would be worse."""
    session = world.begin()
    os.makedirs(f"{world.folders.ledger}/in-the-way")
    os.makedirs(f"{world.folders.ledger}.lock/in-the-way")
    world.run_out(session)
    wait_until(lambda: "ledger" in str(world.where(session, "trouble")), "the user can read it")


def test_an_agent_whose_limit_is_not_written_yet_is_not_offered_again(world: WorkingWorld) -> None:
    """One key would start it anew, a moment after it said that it can do no more."""
    write(f"{world.folders.config}/config.toml", 'order = ["demo"]\n')
    session = world.begin()
    os.makedirs(f"{world.folders.ledger}.lock/in-the-way")
    world.say(session, "out")
    world.wait_state(session, State.RESTING)
    wait_until(lambda: isinstance(world.ask("where", session=session).get("rest"), dict), "it is told")
    rest = world.where(session, "rest")
    assert isinstance(rest, dict)
    assert (rest["back"], rest["first"]) == ("", "demo")


def test_a_configuration_that_cannot_be_meant_stops_the_daemon_and_says_so(
    world: WorkingWorld, tmp_path: Path
) -> None:
    """Guessing what a typing mistake meant could start the wrong agent."""
    world.configure('return = "maybe"\n')
    with (tmp_path / "said").open("w+b") as said:
        streams = [said.fileno()] * 3
        daemon = preloaded.start(
            preloaded.DAEMON, [], env=world.environ, cwd="/", streams=streams, leads=True
        )
        assert daemon.wait(timeout=60) == 78
    assert "config.toml: return: " in (tmp_path / "said").read_text("utf-8")


def test_a_mistake_in_the_configuration_is_said_while_the_daemon_runs(world: WorkingWorld) -> None:
    """What is begun by an older file than the one the user just wrote may be just what they forbade."""
    session = world.begin()
    path = f"{world.folders.config}/config.toml"
    before = Path(path).read_text("utf-8")
    write(path, before + 'return = "maybe"\n')
    with pytest.raises(ConfigurationError, match=r"config\.toml: return: "):
        world.open("demo", new=True)
    note = str(world.open("demo", session=session)["note"])
    assert note.startswith(f"→ The earlier settings still apply: {path}: return: ")
    assert world.where(session, "note") == note
    world.say(session, "out")
    world.wait_for(session, has_taken_over, "the understudy took over, by the order of before")
    assert world.ask("use", session=session, agent="demo", yes=True)["note"] == note
    write(path, before)
    assert world.where(session, "note") == ""
    world.wait_for(session, lambda found: len(found.done) == 2, "demo has taken over again")
    assert world.open("understudy", session=session)["note"] == ""
