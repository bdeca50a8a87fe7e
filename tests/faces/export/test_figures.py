"""The figures that are exported: by bounded labels, nothing made up."""

from decimal import Decimal

from agent_relay.domain.protocol.watch_output import Figure, LiveSession, RestingAgent, WindowUsed
from agent_relay.faces.export._figures import build_figures
from agent_relay.faces.watch.view import View
from agent_relay.transcripts.usage_records import AnswerUsage
from agent_relay.usage.totals import Bill, MetricsRow, Rate
from tests.faces.watch.lives import BEGINNING, look_at

RATE = Rate(0, Decimal("0.5"), Decimal("0.25"), Decimal(1), Decimal(1), Decimal(2))


def bill(tokens: int, *, is_priced: bool = True) -> Bill:
    """What so many tokens in and as many out come to."""
    found = Bill()
    if tokens:
        used = AnswerUsage("k", 1, "n", "m", tokens, output=tokens)
        found.add(used, lambda _model, _at: (RATE,) if is_priced else ())
    return found


def build(
    agents: list[MetricsRow], models: dict[str, list[MetricsRow]] | None = None, view: View | None = None
) -> dict[str, Figure]:
    return {one.name: one for one in build_figures(agents, models or {}, view or View())}


def look(windows: tuple[WindowUsed, ...]) -> View:
    """A session at work whose agent told of these windows."""
    return View((look_at(*BEGINNING, live=LiveSession("S", 5, "L1", windows=windows)),))


def test_work_is_told_by_agent() -> None:
    """The same numbers as the command's table."""
    row = MetricsRow(
        "ada", turns=5, failed=2, handoffs=1, limits=2, failovers_ms=[1500, 2500], added=7, removed=3
    )
    row.wall_ms, row.active_ms = 9000, 4000
    found = build([row])
    told = {
        "turns": 5,
        "turns_failed": 2,
        "limits": 2,
        "handoffs": 1,
        "failovers": 2,
        "failover_seconds": 4.0,
    }
    told |= {"wall_seconds": 9.0, "active_seconds": 4.0, "waiting_seconds": 0.0}
    assert {name: found[name].values for name in told} == {name: {("ada",): at} for name, at in told.items()}
    assert found["lines"].values == {("ada", "added"): 7, ("ada", "removed"): 3}


def test_tokens_and_money_are_told_by_agent_and_model() -> None:
    """A price nobody knows is not zero: its tokens are told apart, and no money for them."""
    rows = {"ada": [MetricsRow("m1", bill(10)), MetricsRow("m2", bill(4, is_priced=False))]}
    found = build([MetricsRow("ada", bill(14))], {name: list(models) for name, models in rows.items()})
    assert found["tokens"].values == {
        ("ada", "m1", "input"): 10,
        ("ada", "m1", "output"): 10,
        ("ada", "m2", "input"): 4,
        ("ada", "m2", "output"): 4,
    }
    assert found["cost_usd"].values == {("ada", "m1"): 25.0}
    assert found["tokens_unpriced"].values == {("ada", "m2"): 8}


def test_labels_are_bounded_whatever_agents_models_and_windows_are_called() -> None:
    """Each is a series somebody stores for years; transcripts are written by anybody."""
    models = [MetricsRow(f"model-{index}", bill(1000 - index)) for index in range(100)]
    agents = [MetricsRow(f"agent-{index}", bill(100 - index)) for index in range(40)]
    found = build(agents, {"agent-0": models})
    assert len(found["tokens"].values) == 2 * 65
    assert found["tokens"].values["agent-0", "other", "input"] == sum(
        1000 - index for index in range(64, 100)
    )
    assert len(found["turns"].values) == 33
    assert ("agent-39",) not in found["turns"].values
    hostile = build(
        [MetricsRow("a\n" + "x" * 200, bill(1)), MetricsRow("x" * 200, bill(1)), MetricsRow("", bill(1))]
    )
    assert set(hostile["turns"].values) == {("other",), ("x" * 80,), ("unknown",)}
    windows = tuple(WindowUsed(name=f"w{index}", used_percent=1, resets_at="") for index in range(40))
    assert len(build([], view=look(windows))["window_used_ratio"].values) == 32


def test_what_is_now_is_told_by_state_agent_and_window() -> None:
    """How many work, who rests, how full windows are, and whether the daemon runs."""
    window = WindowUsed(name="five-hour", used_percent=25.0, resets_at="")
    fuller = window.model_copy(update={"used_percent": 50.0})
    rests = (RestingAgent(agent="bob", model="", scope="account", until=""),) * 2
    found = build(
        [], view=View((*look((window,)).sessions, *look((fuller,)).sessions), rests, is_daemon_here=True)
    )
    assert found["sessions"].values["busy",] == 2
    assert found["sessions"].values["resting",] == 0
    assert ("ended",) not in found["sessions"].values
    assert found["agents_resting"].values == {("bob", "account"): 2}
    assert found["window_used_ratio"].values == {("ada", "five-hour"): 0.5}
    assert found["daemon_up"].values == {(): 1.0}
    assert found["resting_known"].values == {(): 1.0}


def test_that_nobody_knows_who_rests_is_a_figure() -> None:
    """No limits at all would be read as: everybody may work."""
    found = build([], view=View(rests_unknown="cannot read the ledger"))
    assert found["resting_known"].values == {(): 0.0}
    assert found["agents_resting"].values == {}
