"""Takes the picture of the watch page that the pages show: real sessions of scripted agents, a real browser.

python docs/picture.py
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from playwright.sync_api import expect, sync_playwright

from tests.faces.cli_run import World
from tests.faces.terminals import Terminals

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = (
    ("write the parser", "completed"),
    ("reject what is not a number", "in_progress"),
    ("run the tests", "pending"),
)
SCENES = [
    {
        "when": "parser",
        "do": [
            {"plan": [{"text": text, "status": status} for text, status in STEPS]},
            {"context": 124_000, "window": 200_000, "model": "scripted"},
            {"say": "The parser reads whole numbers. Next I'll reject everything else."},
            {"wait_s": 600, "say": "Done."},
        ],
    }
]
LIMIT = [{"when": "docs", "do": [{"limit": "You've hit your session limit", "resets_in_s": 5400}]}]


def main() -> None:
    """`docs/watch.png` shows the page as it is now."""
    folder = tempfile.mkdtemp(prefix="relay-")
    world = World(f"{folder}/home", f"{folder}/shop")
    os.makedirs(world.home, mode=0o700)
    os.makedirs(world.cwd)
    terminals = Terminals(world)
    for name, scenes in (("demo", [*SCENES, *LIMIT]), ("understudy", [])):
        with open(f"{world.home}/{name}.json", "w", encoding="utf-8") as stream:
            json.dump({"scenes": scenes}, stream)
    try:
        take(terminals)
    finally:
        terminals.close()
        shutil.rmtree(folder)


def take(terminals: Terminals) -> None:
    """Two sessions, one at work, one handed over; then the browser looks."""
    first = terminals.open("agent", "demo", "--new")
    first.expect_exact("ready | demo")
    first.send("write the docs\r")
    first.expect_exact("ready | understudy")
    second = terminals.open("agent", "demo", "--new", "--yes", "--task", "a parser for prices")
    second.expect_exact("reject everything else")
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "agent_relay", "watch", "--web"],
        cwd=terminals.world.cwd,
        env=terminals.environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    if process.stdout is None:
        raise AssertionError("a pipe was asked for")
    url = process.stdout.readline().removeprefix("Watching at ").strip()
    try:
        with sync_playwright() as playwright:
            program = shutil.which("chromium-headless-shell")
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1180, "height": 700}, device_scale_factor=1)
            page.goto(url)
            expect(page.locator("section")).to_have_count(2, timeout=90_000)
            expect(page.locator(".plan").first).to_be_visible(timeout=90_000)
            page.screenshot(path=os.path.join(HERE, "watch.png"), full_page=True)
            browser.close()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    main()
