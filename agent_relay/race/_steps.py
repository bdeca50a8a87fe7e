"""Find the next step of a race, for one that runs and for one resumed after a crash."""

from enum import Enum, auto

from agent_relay.race.model import Race, RaceState, Runner, RunnerState

S = RunnerState


class RunnerStep(Enum):
    """The next thing to do for one runner."""

    PLACE = auto()
    START = auto()
    WATCH = auto()
    MEASURE = auto()
    TEST = auto()
    NOTHING = auto()


class RaceStep(Enum):
    """The next thing to do for the race as a whole."""

    CARRY = auto()
    RUN = auto()
    SCORE = auto()
    APPLY = auto()
    NOTHING = auto()


def find_runner_step(race: Race, runner: Runner) -> RunnerStep:
    """Return the next step for `runner`; a step under way when the daemon died is begun again."""
    match runner.state:
        case S.WAITING | S.PLACING:
            return RunnerStep.PLACE
        case S.PLACED | S.STARTING | S.STOPPED:
            return RunnerStep.START
        case S.RUNNING:
            return RunnerStep.WATCH
        case S.ENDED:
            return RunnerStep.MEASURE
        case S.MEASURED | S.TESTING if race.test:
            return RunnerStep.TEST
        case _:
            return RunnerStep.NOTHING


def find_race_step(race: Race) -> RaceStep:
    """Return the next step for the race."""
    match race.state:
        case RaceState.PREPARING:
            return RaceStep.CARRY
        case RaceState.RUNNING:
            settled = all(race.is_settled(runner) for runner in race.runners)
            return RaceStep.SCORE if settled else RaceStep.RUN
        case RaceState.SCORED:
            wanted = race.applies and race.verdict is not None and race.verdict.winner > 0
            return RaceStep.APPLY if wanted and not race.failure else RaceStep.NOTHING
        case RaceState.APPLYING:
            return RaceStep.APPLY
        case _:
            return RaceStep.NOTHING
