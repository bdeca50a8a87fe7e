"""Plays the newest version of every agent through the scenes of tests/newest: `make newest`.

    python -m tests.support.newest [--write] [NAME=VERSION …]

The versions are those npm calls newest, unless told others; they are installed beside the pinned ones,
each in a folder of its own version. `--write` puts the table into docs/agents.md. It prints
a table; the exit status is 1 when a scene went wrong or an agent could not be installed.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

from tests.support.install_clis import (
    PINS,
    PROGRAMS,
    InstallError,
    find_system_node,
    get_clis_folder,
    get_path_folders,
    install_clis,
    install_node,
)
from tests.support.newest_table import SCENES, read_results, render_table, write_page

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(CHECKOUT, "docs", "agents.md")
ASK_S = 120
PINNED = {PROGRAMS[package]: version for package, version in PINS.items()}


def find_newest(clis: str, program: str) -> str:
    """What npm calls the newest version of the package that has `program`."""
    package = next(package for package, name in PROGRAMS.items() if name == program)
    _, npm = find_system_node() or install_node(clis)
    try:
        done = subprocess.run(
            [*npm, "view", package, "version"], capture_output=True, text=True, timeout=ASK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(f"Could not ask npm for the newest {package}: {error}.") from error
    version = done.stdout.strip()
    if done.returncode != 0 or not version:
        raise InstallError(f"Could not ask npm for the newest {package}: {done.stderr.strip()[-600:]}")
    return version


def install_version(clis: str, program: str, version: str) -> str:
    """The path of `program` at `version`, installed below `clis` unless it is there."""
    folder = clis
    if version == PINNED[program]:
        install_clis(clis)
    else:
        folder = os.path.join(clis, "versions", f"{program}-{version}")
        package = next(package for package, name in PROGRAMS.items() if name == program)
        install_clis(folder, {package: version})
    return os.path.join(get_path_folders(folder)[1], program)


def gather_programs(clis: str, versions: Mapping[str, str]) -> str:
    """A folder as `AGENT_RELAY_CLIS` wants it, whose `bin` leads to node and to the agents at `versions`."""
    programs = {program: install_version(clis, program, version) for program, version in versions.items()}
    node, _ = find_system_node() or install_node(clis)
    folder = os.path.join(clis, "versions", "+".join(f"{name}-{it}" for name, it in sorted(versions.items())))
    links = get_path_folders(folder)[0]
    os.makedirs(links, exist_ok=True)
    for name, path in {**programs, "node": os.path.abspath(node)}.items():
        link = os.path.join(links, name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(link)
        os.symlink(path, link)
    return folder


def play_scenes(folder: str, chosen: str) -> str:
    """The results of the scenes, as pytest's XML, played with the programs in `folder`."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "results.xml")
        at_once = max(1, 3 * (os.cpu_count() or 1) // 2)
        subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "pytest",
                    "tests/newest/scenes.py",
                    "tests/newest/reset_scenes.py",
                    "-q",
                    "--durations=40",
                    "--junitxml",
                    path,
                ),
                *("-n", str(at_once), "--dist", "worksteal", *(["-k", chosen] if chosen else [])),
            ],
            cwd=CHECKOUT,
            env={**os.environ, "AGENT_RELAY_CLIS": folder},
            check=False,
        )
        with open(path, encoding="utf-8") as file:
            return file.read()


def parse_words(argv: list[str]) -> argparse.Namespace:
    """The words of the command line."""
    parser = argparse.ArgumentParser(description="Play the newest agents through the scenes.")
    parser.add_argument("--write", action="store_true", help="put the table into docs/agents.md")
    parser.add_argument("-k", dest="chosen", default="", help="only the scenes pytest would choose by this")
    parser.add_argument("versions", nargs="*", metavar="NAME=VERSION", help="instead of the newest")
    words = parser.parse_args(argv)
    words.versions = dict(word.partition("=")[::2] for word in words.versions)
    unknown = sorted(set(words.versions) - set(PINNED))
    if unknown:
        parser.error(f"no agent is called {', '.join(unknown)}; there are {', '.join(PINNED)}")
    return words


def main(argv: list[str]) -> int:
    """Install, play, print; the exit status."""
    words = parse_words(argv)
    clis = get_clis_folder(dict(os.environ))
    try:
        versions = {name: words.versions.get(name) or find_newest(clis, name) for name in PINNED}
        folder = gather_programs(clis, versions)
    except InstallError as error:
        sys.stderr.write(f"{error}\nHint: check the network, or give the version: codex=0.169.0\n")
        return 1
    results = read_results(play_scenes(folder, words.chosen))
    table = render_table(versions, results)
    sys.stdout.write(f"\n{table}")
    if words.write:
        write_page(PAGE, table, day=time.strftime("%Y-%m-%d", time.gmtime()))
    if words.chosen:
        return int(any(not one.is_right for one in results.values()))
    played = [results.get((scene, name)) for scene in SCENES for name in versions]
    return int(any(one is None or not one.is_right for one in played))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
