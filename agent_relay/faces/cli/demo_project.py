"""The demo's throw-away world: a home, two agents in order, and a small project with a task in it."""

import contextlib
import os
import sys

from agent_relay.system.git_program import GitMissingError, ask_git

FIRST_PROMPT = "Make greet() polite: say Good day and the name. Keep the tests green."
SECOND_PROMPT = "Now fix the greeting of nobody."
GREET = '''"""Greets."""


def greet(name):
    return "hello"
'''
TEST_GREET = '''"""Tests of the greeting."""

import unittest

from greet import greet


class Greeting(unittest.TestCase):
    def test_a_name(self):
        self.assertEqual(greet("Ada"), "Good day, Ada!")

    def test_nobody(self):
        self.assertEqual(greet(""), "Good day!")
'''
_KEPT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "USER",
    "LOGNAME",
)


def prepare_home(folder: str) -> dict[str, str]:
    """The environment of the demo: relay's folders and the agents' own below `folder`, nothing of yours."""
    home = os.path.join(folder, "home")
    config = os.path.join(home, "config")
    os.makedirs(config, mode=0o700)
    os.chmod(home, 0o700)
    with open(os.path.join(config, "config.toml"), "w", encoding="utf-8") as stream:
        stream.write('order = ["demo", "understudy"]\n')
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    python = os.path.dirname(os.path.abspath(sys.executable))
    return environ | {
        "PATH": f"{python}{os.pathsep}{environ.get('PATH', os.defpath)}",
        "TERM": environ.get("TERM") or "xterm-256color",
        "AGENT_RELAY_HOME": home,
        "DEMO_AGENT_HOME": os.path.join(folder, "agents"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def create_project(folder: str, environ: dict[str, str]) -> str:
    """A project with one commit below `folder`, where git is installed; without git it is a plain folder."""
    project = os.path.join(folder, "project")
    os.makedirs(project)
    for name, text in (("greet.py", GREET), ("test_greet.py", TEST_GREET)):
        with open(os.path.join(project, name), "w", encoding="utf-8") as stream:
            stream.write(text)
    who = ("-c", "user.name=demo", "-c", "user.email=demo@example.invalid", "-c", "commit.gpgsign=false")
    with contextlib.suppress(GitMissingError):
        for words in (
            ("init", "-q", "-b", "main"),
            ("add", "."),
            (*who, "commit", "-q", "-m", "A greeting."),
        ):
            ask_git(project, words, environ=environ)
    return project
