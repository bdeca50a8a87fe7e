"""The page in a browser: what a real one shows, and who is turned away."""

import json
import os
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.faces.watch.site import BROWSER, Site, open_browser, serve
from tests.support.at_work import WorkingWorld, working_world
from tests.support.seats import find_session, run

pytestmark = [
    pytest.mark.size("every"),
    pytest.mark.skipif(BROWSER is None, reason="no browser is installed"),
]
HOSTILE = "<img src=x onerror=\"document.title='taken'\"> & <script>document.title='taken'</script>"


@pytest.fixture(scope="module")
def world() -> Iterator[WorkingWorld]:
    """A user with two scripted agents, one of them at work on a task that would be markup."""
    with working_world() as made:
        made.begin(task=HOSTILE)
        yield made


@pytest.fixture(scope="module")
def site(world: WorkingWorld) -> Iterator[Site]:
    """A page for the tests that only look at it."""
    with serve(world.project, world.environ) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser without a screen."""
    with open_browser() as found:
        yield found


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """The page, with everything it asked for and complained of."""
    found = browser.new_page(viewport={"width": 1100, "height": 800})
    found.goto(site.url)
    yield found
    found.close()


@pytest.mark.size("test")
def test_the_page_shows_what_the_agent_does(page: Page, world: WorkingWorld) -> None:
    """State, screen and events, as they change, without a reload."""
    expect(page.locator("section .state")).to_have_text("ready", timeout=90_000)
    expect(page.locator("section h2")).to_contain_text("demo")
    world.say(find_session(world), "hello page")
    expect(page.locator("section pre")).to_contain_text("hello page", timeout=90_000)
    expect(page.locator(".told")).to_contain_text("demo starts")


def test_texts_are_texts_and_nothing_comes_from_elsewhere(browser: Browser, site: Site) -> None:
    """A task is words of anybody; a page that loads from elsewhere tells elsewhere."""
    asked: list[str] = []
    complaints: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(site.url)
    expect(page.locator("section .task")).to_have_text(HOSTILE, timeout=90_000)
    assert page.title() == "agent-relay watch"
    home = f"http://127.0.0.1:{site.port}"
    files = ("", "events", "page.css", "page.js", "timeline.js")
    assert sorted(asked) == [f"{home}/{name}" for name in files]
    assert complaints == []
    page.close()


def test_a_daemon_that_dies_and_returns_is_said_on_the_page(page: Page, world: WorkingWorld) -> None:
    """A screen that stands still because nobody looks must not be taken for an agent that waits."""
    expect(page.locator("section pre")).to_be_visible(timeout=90_000)
    world.kill_daemons()
    expect(page.locator("#notice")).to_contain_text("No daemon is running", timeout=90_000)
    expect(page.locator("section pre")).to_have_count(0)
    expect(page.locator("section h2")).to_contain_text("demo")
    world.start_daemon()
    expect(page.locator("#notice")).to_be_hidden(timeout=90_000)
    expect(page.locator("section pre")).to_be_visible(timeout=90_000)


def test_a_ledger_that_cannot_be_read_is_said_on_the_page(page: Page, world: WorkingWorld) -> None:
    """Else the page says that nobody rests; once it can be read, nothing is said of it any more."""
    expect(page.locator("section .state")).to_have_text("ready", timeout=90_000)
    ledger = f"{world.folders.state}/ledger.json"
    expect(page.locator("#resting")).to_have_text("", timeout=90_000)
    os.symlink("ledger.json", ledger)
    try:
        why = f"cannot read {ledger}: Too many levels of symbolic links"
        expect(page.locator("#resting")).to_have_text(f"who rests is unknown: {why}", timeout=90_000)
    finally:
        os.unlink(ledger)
    expect(page.locator("#resting")).to_have_text("", timeout=90_000)


def test_a_wrong_token_is_shown_nothing(browser: Browser, site: Site) -> None:
    """Other users of the machine reach the port, too."""
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{site.port}/#{'x' * 32}")
    expect(page.locator("#notice")).to_contain_text("not valid any more", timeout=90_000)
    expect(page.locator("section")).to_have_count(0)
    page.close()


@pytest.mark.size("test")
def test_only_who_has_the_token_is_told_of_sessions(site: Site) -> None:
    """The page itself holds nothing; what it is filled with does."""
    assert site.ask(path="/events")[0] == 401
    assert site.ask(path="/events", Authorization="Bearer wrong")[0] == 401
    assert site.ask(path="/events", Authorization="Bearer \xe9")[0] == 401
    status, _, line = site.ask(path="/events", Authorization=f"Bearer {site.token}")
    assert status == 200
    assert json.loads(line) == {"type": "daemon", "state": "here"}


@pytest.mark.size("test")
def test_another_name_for_this_machine_is_refused(site: Site) -> None:
    """A page elsewhere can have its own name point at us, and would then be of the same origin."""
    authorization = f"Bearer {site.token}"
    names = ["evil.example", "127.0.0.1", "evil.example:80", "", "127.0.0.1.evil.example"]
    asked = [site.ask(path="/events", Host=host, Authorization=authorization)[0] for host in names]
    asked += [site.ask(Host=host)[0] for host in names]
    assert asked == [421] * 10
    assert site.ask(Host=f"localhost:{site.port}")[0] == 200


@pytest.mark.size("test")
def test_nothing_can_be_changed_and_no_other_page_may_ask(site: Site) -> None:
    """It can look and nothing else."""
    assert [site.ask(method)[0] for method in ("POST", "PUT", "DELETE", "OPTIONS")] == [405] * 4
    assert site.ask(Sec_Fetch_Site="cross-site")[0] == 403
    assert site.ask(path="/../web.py")[0] == 404
    status, headers, _ = site.ask(Origin="http://evil.example")
    assert status == 200
    assert "access-control-allow-origin" not in headers
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert headers["cache-control"] == "no-store"


def test_nobody_else_on_the_network_reaches_it(site: Site) -> None:
    """The socket is loopback's, by the kernel's own list."""
    with open(f"/proc/{site.pid}/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    local = [row[1] for row in rows if row[1].endswith(f":{site.port:04X}") and row[3] == "0A"]
    assert local == [f"0100007F:{site.port:04X}"]


def test_a_port_that_is_taken_is_said_in_one_sentence(world: WorkingWorld, site: Site) -> None:
    """A trace would hide the one thing to do."""
    done = run(world, "watch", "--web", "--port", str(site.port))
    assert done.status == 1
    assert f"cannot listen on port {site.port} of 127.0.0.1" in done.err
    assert run(world, "watch", "--web", "--json").status == 2


def test_the_end_of_the_command_is_said_on_the_page(browser: Browser, world: WorkingWorld) -> None:
    """A page that stands still would be taken for agents that wait."""
    page = browser.new_page()
    with serve(world.project, world.environ) as site:
        page.goto(site.url)
        expect(page.locator("section")).to_be_visible(timeout=90_000)
        assert site.command.end(signal.SIGINT) == 130
        expect(page.locator("#notice")).to_contain_text("does not answer", timeout=90_000)
    page.close()
