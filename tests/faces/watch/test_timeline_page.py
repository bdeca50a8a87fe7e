"""A session over time in a browser: what a real one draws, reads out and reaches by keys."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, Page, expect

from agent_relay.domain.events import session as words
from agent_relay.domain.events import work
from agent_relay.domain.events.session import Body
from agent_relay.domain.names import build_ulid
from agent_relay.store.project import make_session_folder
from agent_relay.store.session_index import write_entry
from agent_relay.store.session_journals import SessionJournal
from tests.faces.cli_run import World, create_world
from tests.faces.watch.site import BROWSER, open_browser, serve

pytestmark = [
    pytest.mark.size("every"),
    pytest.mark.skipif(BROWSER is None, reason="no browser is installed"),
]
WAIT_MS = 90_000
SESSION = build_ulid(1_795_000_000_000, b"0123456789")
HOSTILE = "<img src=x onerror=\"document.title='taken'\">\u202e & <b>"
SHOWN = HOSTILE.replace("\u202e", "\\u202e")
START = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
RESET = START + timedelta(seconds=130)
LIMIT = words.SignalSeen(
    "L1", "ada", "limit", "account", "screen", "your session limit", decides=True, until=RESET.isoformat()
)
LINES: list[tuple[float, Body]] = [
    (0, words.LegStarting("L1", "ada", 1)),
    (0, words.LegStarted("L1", 10, 11, 12)),
    (0, words.LegReady("L1")),
    (20, words.LegBusy("L1")),
    (20, words.PromptSeen("L1", HOSTILE, START.isoformat())),
    (60, words.LegReady("L1")),
    (80, words.LegBusy("L1")),
    (100, LIMIT),
    (100, work.HandoffBegun("H1", "L1", "ada", "bob", "rate_limit", why=HOSTILE)),
    (100, words.LegEnded("L1", "stopped")),
    (100, work.PredecessorStopped("H1", "L1")),
    (102, work.PacketPublished("H1", "P", 1, "bob", "resume/1.json", "resume/1.md", "f")),
    (102, words.LegStarting("L2", "bob", 2, handoff="H1")),
    (103, words.LegStarted("L2", 20, 21, 22)),
    (104, words.LegReady("L2")),
    (105, work.PacketDelivered("H1", "L2")),
    (106, words.LegBusy("L2")),
    (107, work.HandoffConfirmed("H1", "L2")),
    (200, words.LegReady("L2")),
]
END: list[tuple[float, Body]] = [
    (200, words.LegEnded("L2", "exited", 0)),
    (200, words.SessionEnded("it is done")),
]


class Planted:
    """A user without a daemon, and one session whose journal grows as a test says."""

    def __init__(self, folder: str) -> None:
        self.world: World = create_world(folder)
        write_entry(f"{self.world.home}/state/sessions", SESSION, root=self.world.cwd, cwd=self.world.cwd)
        place = make_session_folder(self.world.cwd, SESSION)
        self._journal = SessionJournal(f"{place}/journal.jsonl")
        created = words.SessionCreated(SESSION, self.world.cwd, self.world.cwd, ("ada", "bob"), HOSTILE)
        self.write([(0, created)])

    def write(self, lines: Sequence[tuple[float, Body]], *, after: datetime = START) -> None:
        """The journal gets these lines, each its seconds after a moment."""
        for seconds, body in lines:
            self._journal.append(body, at=after + timedelta(seconds=seconds), generation=1, durable=False)


@pytest.fixture
def planted(tmp_path: os.PathLike[str]) -> Planted:
    """A session that was handed over at a limit."""
    found = Planted(f"{tmp_path}")
    found.write(LINES)
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser without a screen."""
    with open_browser() as found:
        yield found


@pytest.fixture
def page(browser: Browser, planted: Planted) -> Iterator[Page]:
    """The page of that session, watched by its id: it may have ended long ago."""
    environ = planted.world.environ()
    with serve(planted.world.cwd, environ, SESSION) as site:
        found = browser.new_page(viewport={"width": 1100, "height": 900}, timezone_id="UTC", locale="en-US")
        complaints: list[str] = []
        found.on("console", lambda message: complaints.append(message.text))
        found.on("pageerror", lambda error: complaints.append(str(error)))
        found.goto(site.url)
        expect(found.locator(".timeline .leg").first).to_be_visible(timeout=WAIT_MS)
        yield found
        assert complaints == []
        found.close()


def _place(page: Page, selector: str) -> list[list[float]]:
    """Where the elements begin, and how wide they are, in percent of their track."""
    script = "all => all.map(one => [parseFloat(one.style.left), parseFloat(one.style.width)])"
    found: list[list[float]] = page.locator(selector).evaluate_all(script)
    return found


@pytest.mark.size("test")
def test_legs_stand_side_by_side_with_turns_rests_and_handoffs(page: Page, planted: Planted) -> None:
    """What happened at one moment is at one place in every lane."""
    planted.write(END)
    expect(page.locator(".timeline h3")).to_contain_text("2 legs, 3 turns, tokens unknown", timeout=WAIT_MS)
    expect(page.locator(".timeline h3")).to_contain_text("3 min", timeout=WAIT_MS)
    assert _place(page, ".rows .leg") == [[0.0, 50.0], [51.0, 49.0]]
    assert _place(page, ".rows .turn") == [[10.0, 20.0], [40.0, 10.0], [53.0, 47.0]]
    assert _place(page, ".rows .rest") == [[50.0, 15.0]]
    assert [left for left, _ in _place(page, ".rows .passing")] == [50.0]
    assert page.locator(".lane .who").all_text_contents() == ["ada", "bob", "handoffs", ""]
    assert page.locator(".passings li").all_text_contents() == [
        f"Handoff 1, Nov 20, 18:01: ada to bob, rate limit (done, 7 s): {SHOWN}"
    ]


def test_words_of_anybody_stay_words(page: Page) -> None:
    """A prompt or a reason may be markup, or turn the text around it."""
    title = f"Turn 1, Nov 20, 18:00, 40 s: {SHOWN}"
    expect(page.locator(".turn").first).to_have_attribute("title", title)
    assert page.locator(".timeline img, .timeline b").count() == 0
    assert page.title() == "agent-relay watch"


def test_the_drawing_is_read_out_and_reached_by_keys(page: Page) -> None:
    """Whoever sees no bars hears them; a hundred legs are one stop of the Tab key."""
    rows = page.get_by_role("group", name="Timeline, ")
    expect(rows.get_by_role("button", name="Leg 1, ada: ")).to_have_count(1)
    expect(rows.get_by_role("button", name="Handoff 1, ")).to_have_count(1)
    assert page.locator(".rows [tabindex='0']").count() == 1
    page.locator(".rows [tabindex='0']").focus()
    expect(page.locator(".detail")).to_contain_text(
        "Leg 2, bob: Nov 20, 18:01 to now, runs; 1 turn, tokens unknown"
    )
    page.keyboard.press("Home")
    expect(page.locator(".detail")).to_contain_text(
        "Leg 1, ada: Nov 20, 18:00 to Nov 20, 18:01, stopped; 2 turns"
    )
    page.keyboard.press("End")
    expect(page.locator(".detail")).to_contain_text("Handoff 1, ")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".detail")).to_contain_text("Leg 2, ")
    page.locator("summary").click()
    assert [text.split(",")[0] for text in page.locator(".timeline td").all_text_contents()] == [
        "Leg 1", "ada rested from Nov 20", "Handoff 1", "Leg 2"
    ]  # fmt: skip


def test_what_a_person_opened_and_chose_stays_when_the_session_goes_on(page: Page, planted: Planted) -> None:
    """A session at work changes every second; a focus that jumps away each time reaches nothing."""
    page.locator("summary").click()
    page.locator(".rows [tabindex='0']").focus()
    page.keyboard.press("Home")
    planted.write([(210, words.LegBusy("L2")), (220, words.LegReady("L2"))])
    expect(page.locator(".timeline h3")).to_contain_text("4 turns", timeout=WAIT_MS)
    assert page.evaluate("document.activeElement.dataset.key") == "L1"
    expect(page.locator(".timeline td").first).to_be_visible()


def test_the_page_is_dark_where_the_user_wants_that(page: Page) -> None:
    """Bars of the light page on a dark one cannot be told apart."""
    read = "getComputedStyle(document.querySelector('.leg')).backgroundColor"
    light = page.evaluate(read)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(read) != light


def test_ten_thousand_turns_leave_the_page_small(page: Page, planted: Planted) -> None:
    """A page of as many boxes stands still."""
    planted.write(
        [
            (300.0 + 2 * turn + part, body("L2"))
            for turn in range(10_000)
            for part, body in ((0, words.LegBusy), (1, words.LegReady))
        ]
    )
    expect(page.locator(".timeline h3")).to_contain_text("10003 turns", timeout=WAIT_MS)
    assert 100 < page.locator(".rows .turn").count() < 400
    told = page.locator(".rows .turn").last.get_attribute("title") or ""
    assert re.fullmatch(r"[0-9]+ turns, Nov 20, 23:38, [0-9]+ (?:s|min)", told)


def _write_usage(world: World, day: str, model: str) -> None:
    """A conversation on that day in which a model answered once: a million tokens in, as many out."""
    place = f"{world.home}/.claude/projects/here"
    os.makedirs(place, exist_ok=True)
    common = {"sessionId": f"own-{day}", "timestamp": f"{day}T10:00:00Z", "cwd": world.cwd}
    usage = {"input_tokens": 1_000_000, "output_tokens": 1_000_000}
    prompt = {"type": "user", "uuid": "p", "message": {"role": "user", "content": "go"}}
    answer = {"type": "assistant", "uuid": f"a{day}", "message": {"id": day, "model": model, "usage": usage}}
    with open(f"{place}/own-{day}.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(common | row) + "\n" for row in (prompt, answer))


def test_usage_by_day_has_bars_gaps_and_says_what_is_unknown(browser: Browser, planted: Planted) -> None:
    """The same days, figures and unknowns as `metrics --by day` prints."""
    planted.write(END)
    _write_usage(planted.world, "2025-11-18", "claude-opus-4-8")
    _write_usage(planted.world, "2026-11-18", "claude-opus-4-8")
    _write_usage(planted.world, "2026-11-20", "nobody-lists-this")
    with serve(planted.world.cwd, planted.world.environ(), SESSION) as site:
        page = browser.new_page(timezone_id="UTC", locale="en-US")
        page.goto(site.url)
        expect(page.locator("#days")).to_be_visible(timeout=WAIT_MS)
        rows = page.locator("#days tr").evaluate_all(
            "all => all.map(row => [...row.cells].map(one => one.innerText))"
        )
        widths = page.locator("#days rect").evaluate_all("all => all.map(one => one.getAttribute('width'))")
        page.close()
    assert rows == [
        ["Day", "Tokens", "", "Cost", ""],
        ["2025-11-18", "2,000,000", "", "$30.00", ""],
        ["…", "364 days without usage"],
        ["2026-11-18", "2,000,000", "", "$30.00", ""],
        ["2026-11-19", "0", "", "-", ""],
        ["2026-11-20", "2,000,000", "", "unknown", ""],
    ]
    assert widths == ["100.00%"] * 5
