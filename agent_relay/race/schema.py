"""Define what `race --json` prints, as pydantic models, and build the JSON Schema from them."""

from typing import Literal

from pydantic import Field, TypeAdapter

from agent_relay.domain.documents.document import Printed, build_schema


class RunnerView(Printed):
    """One runner; `null` is what is not known (yet).

    `runner` is its number and agent, `how` how it ended and `why`; `place` and `reason` come with the
    verdict. `at_work` is the agent that works just now, `doing` what it does.
    """

    runner: str
    number: int
    agent: str
    state: str
    how: str = Field(description="empty while it works; finished, limited, failed, timed-out, lost …")
    why: str
    session: str
    branch: str
    tree: str
    spent_s: float
    files: int | None
    added: int | None
    removed: int | None
    turns: int | None
    tokens: int | None
    cost: str | None = Field(description="in US dollars, at list prices")
    test: Literal["none", "waiting", "running", "passed", "failed"]
    test_status: int | None
    test_s: float | None
    place: int | None
    reason: str
    at_work: str = ""
    doing: str = ""


class OverlapView(Printed):
    """Two runners that changed the same place."""

    first: str
    second: str
    path: str
    what: str


class RaceView(Printed):
    """A race with all its runners; `winner` and `applied` are empty if there is none."""

    race: str
    state: str
    root: str
    task: str
    test: str
    max_time_s: int
    head: str
    began_at: str
    updated_at: str
    notes: list[str]
    why: str
    resumable: bool
    runners: list[RunnerView]
    overlaps: list[OverlapView]
    winner: str
    ranking: list[str]
    applied: str
    applied_files: int
    failure: str
    active: bool
    trouble: str


def build_race_schema() -> dict[str, object]:
    """Build the JSON Schema of a race."""
    return build_schema(TypeAdapter(RaceView), "What agent-relay race --json prints")
