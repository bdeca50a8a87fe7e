"""Count what a receiver takes and what not, and report failures: at once, then seldom, and when they end.

Everything is counted; a failure is reported when it begins, when it loses something, and when it ends.
"""

import threading
import time
from collections.abc import Callable, Mapping

import msgspec

from agent_relay.domain.protocol.watch_output import Figure, Labels
from agent_relay.domain.values import replace

QUIET_S = 60.0
"""Fewest seconds between reports of a receiver that fails, works and fails again."""
SELDOM_S = 300.0
"""Seconds between reports of an ongoing failure."""


class Receiver(msgspec.Struct, frozen=True):
    """Destination of things: `key` is for figures; `name`, `thing` and its plural `things` are for people."""

    key: str
    name: str
    thing: str
    things: str


class Count(msgspec.Struct, frozen=True):
    """Number of things `taken` and `lost`; `trouble` is why the newest try failed, if it did."""

    taken: int = 0
    lost: int = 0
    trouble: str = ""


class ReportState(msgspec.Struct, frozen=True):
    """The last report: whether things fail, whether that loses any, and how many are `lost` in all.

    `at_s` is when, on any clock that goes on; `None` for never.
    """

    is_failing: bool = False
    is_losing: bool = False
    lost: int = 0
    at_s: float | None = None


NO_REPORT = ReportState()


def update_report(
    receiver: Receiver, count: Count, said: ReportState, now_s: float
) -> tuple[str, ReportState]:
    """Return the line to report now, empty for none, and the state after it."""
    is_failing, is_losing = bool(count.trouble), count.lost > said.lost
    wait_s = SELDOM_S if said.is_failing else QUIET_S
    is_late = said.at_s is None or now_s - said.at_s >= wait_s
    if is_failing != said.is_failing:
        is_due = said.is_failing or is_late
    else:
        is_due = is_losing and (is_late or (is_failing and not said.is_losing))
    if not is_due:
        return "", said
    after = replace(said, is_failing=is_failing, lost=count.lost, at_s=now_s)
    after = replace(after, is_losing=is_failing and (is_losing or (said.is_failing and said.is_losing)))
    return render(receiver, count, is_losing=is_losing), after


def render(receiver: Receiver, count: Count, *, is_losing: bool) -> str:
    """Render the receiver's state in a line; `is_losing` if there are losses not yet reported."""
    things = receiver.things
    line = f"{receiver.name} takes {things} again."
    if count.trouble:
        line = f"{receiver.name} does not take {things}: {count.trouble}."
    if is_losing:
        line += f" {count.lost} {receiver.thing if count.lost == 1 else things} given up so far."
    elif count.trouble:
        line += " They are tried again."
    return line


def build_delivery_figures(counts: Mapping[str, Count]) -> list[Figure]:
    """Build the figures of all receivers, by their keys."""
    done: dict[Labels, float] = {
        (key, outcome): float(value)
        for key, count in counts.items()
        for outcome, value in (("taken", count.taken), ("given_up", count.lost))
    }
    failing: dict[Labels, float] = {(key,): float(bool(count.trouble)) for key, count in counts.items()}
    about = "Events told and pushes made, and those that were given up."
    return [
        Figure("deliveries", "counter", about, ("to", "outcome"), done, "{delivery}"),
        Figure("delivery_failing", "gauge", "Whether the newest try failed.", ("to",), failing, "1"),
    ]


class DeliveryCounter:
    """Counts the deliveries to one receiver, on any thread; calls `tell` with the lines to show people."""

    def __init__(
        self, receiver: Receiver, tell: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.receiver = receiver
        self._tell = tell
        self._clock = clock
        self._turn = threading.Lock()
        self._said = NO_REPORT
        self.count = Count()

    def note(self, *, taken: int = 0, lost: int = 0, trouble: str | None = None) -> None:
        """Add to the counts; `trouble` is why the newest try failed, empty for success, `None` to keep it."""
        with self._turn:
            before = self.count
            self.count = replace(
                before,
                taken=before.taken + taken,
                lost=before.lost + lost,
                trouble=before.trouble if trouble is None else trouble,
            )
            line, self._said = update_report(self.receiver, self.count, self._said, self._clock())
            if line:
                self._tell(line)

    def end(self) -> None:
        """Report losses not yet reported, however recent the last report is; nothing if there are none."""
        with self._turn:
            if self.count.lost > self._said.lost:
                self._tell(render(self.receiver, self.count, is_losing=True))
                self._said = replace(self._said, lost=self.count.lost)
