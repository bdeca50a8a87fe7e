"""`make wheel`: the wheel, installed on the oldest and the newest Python here, plays the demo.

    python tests/support/try_wheel.py

The wheel stays in `dist/`.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, HERE)

from tests.support.wheel import build_wheel  # noqa: E402 - found by the line above

OLDEST, LATEST_MINOR = 11, 19


def main() -> int:
    """0 where the demo came to its end on both."""
    dist = os.path.join(HERE, "dist")
    shutil.rmtree(dist, ignore_errors=True)
    os.makedirs(dist)
    wheel = build_wheel(dist)
    sys.stdout.write(f"built {os.path.relpath(wheel, HERE)}\n")
    pythons = find_pythons()
    for python in dict.fromkeys((pythons[0], pythons[-1])):
        try_on(python, wheel)
    return 0


def find_pythons() -> list[str]:
    """The Pythons from 3.11 on that are here and can make environments, oldest first; ours at least.

    Of a version manager's, PATH has shims, which run the chosen version only: the others are in its folder.
    """
    kept = glob.glob(f"{os.environ.get('PYENV_ROOT') or os.path.expanduser('~/.pyenv')}/versions/3.*/bin")
    environ = os.environ | {"PATH": os.pathsep.join([*sorted(kept), os.environ.get("PATH", os.defpath)])}
    found = []
    for minor in range(OLDEST, LATEST_MINOR):
        answer = subprocess.run(
            ["/bin/sh", "-c", f"exec python3.{minor} -c 'import sys, ensurepip; print(sys.executable)'"],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode == 0:
            found.append(answer.stdout.strip())
    return found or [sys.executable]


def try_on(python: str, wheel: str) -> None:
    """The demo comes to its end on `python`. Raises CalledProcessError where it does not."""
    with tempfile.TemporaryDirectory(prefix="agent-relay-wheel-") as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        installer = [f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*installer, wheel], check=True)
        for words in (["--version"], ["agents", "--all"], ["demo", "--fast"]):
            sys.stdout.write(f"{os.path.basename(python)}: agent-relay {' '.join(words)}\n")
            sys.stdout.flush()
            subprocess.run([f"{folder}/bin/agent-relay", *words], cwd=folder, check=True)


if __name__ == "__main__":
    sys.exit(main())
