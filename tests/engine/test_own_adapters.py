"""Agents of the user's own making: their templates, ports, names and mistakes."""

import os

import pytest

from agent_relay.agents.adapters import find_program, load_adapter
from agent_relay.agents.agent_versions import note_answer
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.state import State
from tests.support.at_work import begin, has_taken_over, restart, say
from tests.support.own_adapters import add_adapter
from tests.support.relay_world import RelayWorld, is_daemons, wait_until

pytestmark = pytest.mark.size("test")


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def test_a_template_is_rendered_into_the_legs_folder_with_a_port_and_what_the_user_has(
    world: RelayWorld,
) -> None:
    """Hooks and settings are given per launch, so that nobody's own files are edited."""
    file = '{ name = "set.txt", template = "set.j2", reads = { mine = "{home}/mine" } }'
    launch = f"needs_port = true\nfiles = [{file}]\n"
    folder = add_adapter(world, "own", launch=launch)
    write(
        f"{folder}/set.j2",
        "{{ mine.colour }} {{ port|int > 0 }} {{ password|length > 20 }} {{ hook_command }}",
    )
    write(f"{world.home}/mine", '{"colour": "green"}')
    session = str(world.open("own")["session"])
    found = world.wait_for(session, lambda found: found.state is State.READY, "the agent is ready")
    assert found.leg is not None
    with open(f"{world.folders.legs}/{found.leg.id}/set.txt", encoding="utf-8") as stream:
        words = stream.read().split()
    assert words[:3] == ["green", "True", "True"]
    assert words[-1].endswith("hook.py")


@pytest.mark.parametrize(
    ("template", "why"),
    [(None, "is missing"), ("{{ 1 +", "cannot be used"), ("{{ cwd.x.y }}", "cannot be used")],
)
def test_a_template_that_cannot_be_used_is_named_and_nothing_of_the_leg_is_left(
    world: RelayWorld, template: str | None, why: str
) -> None:
    """The person who wrote it reads which file is wrong."""
    folder = add_adapter(world, "own", launch='files = [{ name = "set.txt", template = "set.j2" }]\n')
    if template is not None:
        write(f"{folder}/set.j2", template)
    with pytest.raises(RelayError, match=rf"the adapter's template .*own/set\.j2 {why}"):
        world.open("own")
    assert os.listdir(world.folders.legs) == []
    assert world.ask("session.list")["sessions"] == []


def test_a_program_that_cannot_run_is_said_and_leaves_nothing(world: RelayWorld) -> None:
    """An interpreter that went away looks like an installed agent until it is started."""
    folder = add_adapter(world, "own", program="broken")
    write(f"{folder}/broken", "#!/nowhere/python\n")
    os.chmod(f"{folder}/broken", 0o700)
    with pytest.raises(RelayError, match="cannot be started"):
        world.open("own")
    assert os.listdir(world.folders.legs) == []
    assert all(is_daemons(line) for line in world.processes().values())


def test_a_broken_adapter_is_named_at_a_start_and_left_out(world: RelayWorld) -> None:
    """It is the business of whoever uses it, and nobody else's: agents start, and hand over, without it."""
    folder = f"{world.folders.config}/adapters/zed"
    os.makedirs(folder)
    write(f"{folder}/adapter.toml", "name = [\n")
    restart(world)
    opened = world.open("demo")
    assert str(opened["note"]).startswith(
        f"→ Left out, because its adapter cannot be used: zed ({folder}/adapter"
    )
    session = str(opened["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the first agent is ready")
    say(world, session, "out")
    world.wait_for(session, has_taken_over, "the understudy took over")
    with pytest.raises(RelayError, match=r"zed/adapter\.toml is not TOML"):
        world.open("zed", new=True)


def test_an_agent_newer_than_what_was_tried_is_told_once(world: RelayWorld) -> None:
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


def test_an_adapter_mended_since_the_daemon_began_is_known_by_its_hint(world: RelayWorld) -> None:
    """The file is right by now; only a daemon that starts again sees that."""
    folder = f"{world.folders.config}/adapters/zed"
    os.makedirs(folder)
    write(f"{folder}/adapter.toml", "name = [\n")
    restart(world)
    with pytest.raises(RelayError) as refused:
        world.open("zed")
    assert refused.value.hint == "Once it is mended: agent-relay daemon restart"


def test_an_unknown_agent_is_refused_with_those_there_are(world: RelayWorld) -> None:
    """The name may come from a script that is older than the configuration."""
    with pytest.raises(RelayError, match="there is no agent 'nobody'"):
        world.open("nobody")


def test_a_ledger_that_cannot_be_read_or_written_stops_no_failover(world: RelayWorld) -> None:
    """The worst that follows is that an agent is asked once too often; a deaf session would be worse."""
    session = begin(world)
    os.makedirs(f"{world.folders.ledger}/in-the-way")
    os.makedirs(f"{world.folders.ledger}.lock/in-the-way")
    say(world, session, "out")
    world.wait_for(session, has_taken_over, "the understudy took over")
    wait_until(
        lambda: "ledger" in str(world.ask("where", session=session)["trouble"]), "the user can read it"
    )


def test_an_agent_whose_limit_is_not_written_yet_is_not_offered_again(world: RelayWorld) -> None:
    """One key would start it anew, a moment after it said that it can do no more."""
    write(f"{world.folders.config}/config.toml", 'order = ["demo"]\n')
    restart(world)
    session = begin(world)
    os.makedirs(f"{world.folders.ledger}.lock/in-the-way")
    say(world, session, "out")
    world.wait_for(session, lambda found: found.state is State.RESTING, "every agent rests")
    wait_until(lambda: isinstance(world.ask("where", session=session).get("rest"), dict), "it is told")
    rest = world.ask("where", session=session)["rest"]
    assert isinstance(rest, dict)
    assert (rest["back"], rest["first"]) == ("", "demo")


def test_a_configuration_that_cannot_be_meant_stops_the_daemon_and_says_so(world: RelayWorld) -> None:
    """Guessing what a typing mistake meant could start the wrong agent."""
    from agent_relay.daemon._application import open_app
    from agent_relay.daemon.server import Notices
    from agent_relay.system.clock import SystemClock

    write(f"{world.folders.config}/config.toml", 'return = "maybe"\n')
    with pytest.raises(ConfigurationError, match="return"):
        open_app(world.folders, SystemClock(), Notices())


def test_a_mistake_in_the_configuration_is_said_while_the_daemon_runs(world: RelayWorld) -> None:
    """What is begun by an older file than the one the user just wrote may be just what they forbade."""
    session = begin(world)
    path = f"{world.folders.config}/config.toml"
    with open(path, encoding="utf-8") as stream:
        before = stream.read()
    write(path, before + 'return = "maybe"\n')
    with pytest.raises(ConfigurationError, match=r"config\.toml: return: "):
        world.open("demo", new=True)
    note = str(world.open("demo", session=session)["note"])
    assert note.startswith(f"→ The earlier settings still apply: {path}: return: ")
    assert world.ask("where", session=session)["note"] == note
    say(world, session, "out")
    world.wait_for(session, has_taken_over, "the understudy took over, by the order of before")
    assert world.ask("use", session=session, agent="demo", yes=True)["note"] == note
    write(path, before)
    assert world.ask("where", session=session)["note"] == ""
    world.wait_for(session, lambda found: len(found.done) == 2, "demo has taken over again")
    assert world.open("understudy", session=session)["note"] == ""
