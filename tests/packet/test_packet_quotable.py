"""A packet built of trimmed facts is the same packet."""

from datetime import UTC, datetime

from agent_relay.domain.documents.packet import Reason
from agent_relay.domain.facts import CommandRun, Facts, Message, ToolError
from agent_relay.packet.build import PacketContext, build_packet
from agent_relay.packet.extract.quotable import trim_facts

_OCCASION = PacketContext("P", "S", 1, datetime(2026, 1, 1, tzinfo=UTC), "a", "b", Reason.MANUAL)


def _run(number: int, command: str, exit_code: int) -> CommandRun:
    return CommandRun(command, f"Error: {'x' * number}", exit_code, 1, place=f"t:{number}")


def test_what_went_well_loses_its_output_and_what_failed_last_keeps_it() -> None:
    """Most of a transcript is output nobody will quote."""
    runs = (
        _run(1, "make", 2),
        _run(2, "ls", 0),
        _run(3, "make", 2),
        _run(4, "pytest", 0),
        _run(5, "true", 0),
    )
    facts = trim_facts(Facts(agent="a", commands=runs))
    assert [run.output for run in facts.commands] == [
        "Error: x",
        "",
        "Error: xxx",
        "Error: xxxx",
        "",
    ]


def test_measured_numbers_and_the_line_of_a_failure_stay() -> None:
    """A choice was settled by a number, a rejection by the run that disproved it."""
    bench = "warming up\np50=9ms p99=212ms\nend\n" + "0123456789abcdef" * 4
    killed = "starting\nError: killed\n" + "bye\n" * 3
    long = "\n".join(f"line {number}" for number in range(2000))
    runs = (
        CommandRun("bench", bench, 0, 1),
        CommandRun("render big", killed, 137, 1),
        CommandRun("render big", "", 0, 2),
        CommandRun("list", long, 0, 2),
    )
    assert [run.output for run in trim_facts(Facts(agent="a", commands=runs)).commands] == [
        "p50=9ms p99=212ms",
        "Error: killed",
        "",
        "\n".join(f"line {number}" for number in range(1994, 2000)),
    ]


def test_no_line_of_a_key_is_taken_for_a_measurement() -> None:
    """Alone it looks like no secret, so nothing would remove it later."""
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\nk3Jx9w 1\n-----END OPENSSH PRIVATE KEY-----\n"
    encoded = "c2VjcmV0MQ" * 7 + "\nc2VjcmV0MQ==\n4096\np99=212ms\n"
    runs = (CommandRun("cat id", key, 0, 1), CommandRun("base64 x", encoded, 0, 1))
    outputs = [run.output for run in trim_facts(Facts(agent="a", commands=runs)).commands]
    assert outputs == ["", "4096\np99=212ms"]


def test_a_command_that_succeeded_in_the_end_keeps_one_line_of_its_failure() -> None:
    """A failure that was overcome is no blocker, so the rest of its output is not needed."""
    facts = trim_facts(Facts(agent="a", commands=(_run(1, "make", 2), _run(2, "make", 0))))
    assert [run.output for run in facts.commands] == ["Error: x", ""]


def test_old_errors_go_unless_the_user_spoke_in_them() -> None:
    """A refusal with words is a rule, however old."""
    errors = [ToolError("Edit", f"error {number}", 1) for number in range(20)]
    errors[0] = ToolError("Bash", "the user said: use git rm", 1)
    assert [one.text for one in trim_facts(Facts(agent="a", errors=tuple(errors))).errors] == [
        "the user said: use git rm",
        *(f"error {number}" for number in range(4, 20)),
    ]


def test_the_packet_is_the_same() -> None:
    """Trimming may cost nothing but memory and time."""
    commands = [_run(number, f"tool {number % 30}", number % 3) for number in range(90)]
    commands += [_run(number, "pytest -q", number % 2) for number in range(90, 120)]
    talk = (Message("user", "go", 1), Message("assistant", "ok", 1))
    facts = Facts(agent="a", conversation=talk, commands=tuple(commands))
    assert build_packet(trim_facts(facts), _OCCASION) == build_packet(facts, _OCCASION)
