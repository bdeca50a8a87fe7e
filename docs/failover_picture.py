"""Draws the picture of a failover that README opens with, from a terminal recorded during a real one.

python docs/failover_picture.py          # docs/failover.svg, from the recording
python docs/failover_picture.py record   # the recording, anew, from two real agents
"""

import base64
import json
import os
import sys
import textwrap
import zlib
from io import StringIO

from rich.console import Console
from rich.text import Text

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDING, PICTURE = f"{HERE}/failover.json", f"{HERE}/failover.svg"
SIZE = (22, 96)
CAPTIONS = (
    "The limit: the bottom line says who takes over, why, and what is awaited.",
    "The next agent starts. What you type now waits until it has its packet.",
    "Seconds later: the same terminal, the same task, the next agent.",
)
TASK = "Make add() in calc.py right; test_calc.py shows what is wrong."
PLAN = "The test still fails. Next step: make add() return a + b."
GOES_ON = "I pick up where it stopped: add() must return a + b."
# rich's own format fetches fonts from elsewhere; a picture asks nobody for anything.
SVG_FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>{lines}</defs>
<rect fill="#0c0c0c" x="0" y="0" width="{width}" height="{height}" rx="8"/>
<g transform="translate({terminal_x}, {terminal_y})">{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def render() -> str:
    """Return the picture: the recorded screen at its three moments, one below the other."""
    with open(RECORDING, encoding="utf-8") as file:
        recording = json.load(file)
    rows, cols = recording["size"]
    data = zlib.decompress(base64.b64decode("".join(recording["data"])))
    console = Console(
        record=True,
        width=cols,
        file=StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    emulator = Emulator(find_library() or "", cols, rows)
    begin = 0
    for end, caption in zip(recording["moments"], CAPTIONS, strict=True):
        emulator.feed(data[begin:end])
        begin = end
        if caption != CAPTIONS[0]:
            console.print()
        console.print(Text(f" {caption}".ljust(cols), style="bold black on bright_white", no_wrap=True))
        for row in range(rows):
            line = Text.from_ansi(emulator.paint_row(row, cols).decode("utf-8", "replace"))
            line.truncate(cols)
            console.print(line, no_wrap=True, overflow="crop", crop=True)
    emulator.close()
    return console.export_svg(title="", code_format=SVG_FORMAT, unique_id="failover", font_aspect_ratio=0.6)


def record() -> None:
    """Play a real failover, and keep what its terminal was sent up to three moments of it."""
    from tests.support import real_seeds
    from tests.support.provider.steps import call, read, say
    from tests.support.real import open_world
    from tests.support.real_work import LIMITS, order, type_line, wait_prompt

    with open_world() as world:
        real_seeds.free_hands(world.home)
        order(world, "claude", "codex")
        look = call(read("claude", path=f"{world.project}/calc.py"), text="add() subtracts; I try a product.")
        world.play(
            "claude",
            look,
            call(read("claude", path=f"{world.project}/test_calc.py"), text=PLAN),
            LIMITS["claude"],
        )
        world.play("codex", say(GOES_ON))
        terminal = world.open(world.relay("claude"), size=SIZE)
        wait_prompt(terminal, "claude")
        type_line(terminal, TASK)
        moments = []
        for sign in ("claude is ending|writing the packet", "codex is starting", GOES_ON[:28]):
            terminal.wait_for(sign)
            moments.append(len(terminal.raw))
        terminal.wait_until(lambda: "claude → codex" not in terminal.rows[-1], "the bar to be gone")
        terminal.wait_quiet()
        moments[-1] = len(terminal.raw)
        data = bytes(terminal.raw)
        place = world.root.encode()
        # As long as the folder it was played in, so that what stands behind it keeps its place.
        data = data.replace(place, b"/home/ada/projects/ledger"[: len(place)].ljust(len(place), b"-"))
    with open(RECORDING, "w", encoding="utf-8") as file:
        lines = textwrap.wrap(base64.b64encode(zlib.compress(data, 9)).decode(), 120)
        json.dump({"size": SIZE, "moments": moments, "data": lines}, file, indent=1)
        file.write("\n")


def main() -> None:
    """Write the picture; with `record`, the recording first."""
    if sys.argv[1:] == ["record"]:
        record()
    with open(PICTURE, "w", encoding="utf-8") as file:
        file.write(render())


if __name__ == "__main__":
    main()
