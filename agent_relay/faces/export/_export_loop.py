"""Keep exports current: a thread reads figures now and then, the caller gets events at once."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from agent_relay.domain.errors import RelayError
from agent_relay.domain.protocol.figure import Figure
from agent_relay.domain.protocol.watch_output import EventTold
from agent_relay.faces.export._figures import ExportReader
from agent_relay.faces.watch.figures_text import render_unknown_rests
from agent_relay.faces.watch.view import View, list_changes
from agent_relay.faces.watch.watcher import Watcher
from agent_relay.system.failures import start_thread
from agent_relay.system.net.delivery_report import DeliveryCounter, build_delivery_figures

_SHARE = 20
"""Reading figures takes at most one part in this many of the time."""
_MOST_OFTEN_S = 0.5


class LatestFigures:
    """The newest figures, for any number of readers in any thread; getting them reads nothing.

    If deliveries are counted, their counts are included, as of the moment of asking.
    """

    def __init__(self) -> None:
        self._figures: Sequence[Figure] = ()
        self.deliveries: tuple[DeliveryCounter, ...] = ()

    def count(self, deliveries: DeliveryCounter) -> None:
        """Include the counts of these deliveries, too."""
        self.deliveries = (*self.deliveries, deliveries)

    def put(self, figures: Sequence[Figure]) -> None:
        """Make these figures the newest."""
        self._figures = tuple(figures)

    def get(self) -> Sequence[Figure]:
        """Return the newest figures; none before the first reading, except counts of deliveries."""
        counts = {one.receiver.key: one.count for one in self.deliveries}
        return (*self._figures, *build_delivery_figures(counts))


class NewEvents:
    """Finds the new events of one view after another, each once: those after `began`, none of the first view.

    A session that comes back into view, as one does that is resumed long after its end, brings all its old
    events: none of those is new.
    """

    def __init__(self, began: datetime) -> None:
        self._began = began
        self._before: View | None = None
        self._told: dict[str, int] = {}

    def take(self, after: View) -> Sequence[EventTold]:
        """Return the new events of `after`; none of the first view."""
        before, self._before = self._before, after
        found = [event for event in list_changes(before, after) if isinstance(event, EventTold)]
        news = [event for event in found if before is not None and self._is_news(event)]
        for event in found:
            self._told[event.session] = max(event.number, self._told.get(event.session, 0))
        return news

    def _is_news(self, event: EventTold) -> bool:
        last = self._told.get(event.session)
        return event.number > last if last is not None else datetime.fromisoformat(event.at) >= self._began


class ExportLoop:
    """Reads `reader`'s figures every `interval_s` seconds, and passes on events to `tell` as they happen.

    `warn` is given a line for people if figures can no longer be read and stay as they were, if they leave
    out what cannot be read, or if it is unknown who rests.
    """

    def __init__(
        self, watcher: Watcher, reader: ExportReader, *, interval_s: float, warn: Callable[[str], None]
    ) -> None:
        self._warn = warn
        self.newest = LatestFigures()
        self._watcher = watcher
        self._reader = reader
        self._interval_s = interval_s
        self._failure: BaseException | None = None
        self._unread = ""
        self._unknown = ""

    def read(self) -> None:
        """Read the newest figures as of now. Raise RelayError if they cannot be read."""
        view = self._watcher.read()
        unknown, self._unknown = self._unknown, view.rests_unknown
        if self._unknown not in ("", unknown):
            self._warn(render_unknown_rests(self._unknown))
        self.newest.put(self._reader.read(view, datetime.now(UTC)))
        before, self._unread = self._unread, self._reader.unread
        if self._unread not in ("", before):
            self._warn(f"the figures leave out what cannot be read: {self._unread}")

    def run(self, tell: Callable[[EventTold], None]) -> None:
        """Pass events to `tell`, none from before the call, and never return.

        Raises the error of its thread if that failed.
        """
        start_thread("figures", self._go_on_reading, on_failure=self._fail)
        news = NewEvents(datetime.now(UTC))
        while self._failure is None:
            for event in news.take(self._watcher.read()):
                tell(event)
            began = time.monotonic()
            self._watcher.wait()
            time.sleep(max(0.0, _MOST_OFTEN_S - (time.monotonic() - began)))
        raise self._failure

    def _go_on_reading(self) -> None:
        wait_s, told = self._interval_s, ""
        while True:
            time.sleep(wait_s)
            began, why = time.monotonic(), ""
            try:
                self.read()
            except RelayError as error:
                why = error.sentence
            if why and why != told:
                self._warn(f"the figures are not being updated: {why}")
            told = why
            wait_s = max(self._interval_s, _SHARE * (time.monotonic() - began))

    def _fail(self, error: BaseException) -> None:
        # Figures that stand still would be believed.
        self._failure = error
