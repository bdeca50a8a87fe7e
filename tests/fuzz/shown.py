"""What an agent shows, through emulator, screen, repaint, detector and what is stored of its end."""

import json
import random
from datetime import UTC, datetime

from agent_relay.agents.adapters import load_rules
from agent_relay.agents.catalog import load_adapters
from agent_relay.detect.detector import Detector
from agent_relay.detect.screen_state import read_input, read_state
from agent_relay.domain.screen import Screen, parse_screen
from agent_relay.domain.values import AgentName
from agent_relay.system.disk.folders import Folders
from agent_relay.terminal._bar_frame import BarFrame
from agent_relay.terminal.bar_row import fit
from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.holder._event_loop import Faults
from agent_relay.terminal.holder._output import Output
from agent_relay.terminal.holder._terminal import Bar
from agent_relay.terminal.holder.wire import FrameReader, render_frame
from tests.fuzz.inputs import Step, cut, make_stream

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
_BAR = ["relay  ada → bob · session limit", "relay  ada → bob", "bob"]
_SIZES = (1, 2, 3, 5, 24, 80, 132, 200)


class _NoFaults(Faults):
    """A mistake is a finding here, not a note."""

    def __init__(self) -> None:
        super().__init__("/nowhere")

    def note(self, error: BaseException, doing: str) -> None:
        raise AssertionError(doing) from error


class Shown:
    """Nothing raises, screens can be sent and read, a repaint shows the same text, the bar is in its row."""

    name = "shown"

    def __init__(self) -> None:
        loaded = load_adapters(Folders("/nowhere", "/nowhere", "/nowhere"))
        self._rules = {name: load_rules(one) for name, one in loaded.items()}
        self._accepted = tuple(
            text.encode().decode("latin-1")
            for rules in self._rules.values()
            for rule in rules.limits
            for text in rule.accepts
        )
        self._library = find_library() or ""

    def make(self, rng: random.Random) -> list[Step]:
        """A size, then reads with looks and resizes between them."""
        steps: list[Step] = [["size", rng.choice(_SIZES), rng.choice(_SIZES)]]
        for part in cut(rng, make_stream(rng, self._accepted)):
            steps.append(["read", part])
            if rng.random() < 0.3:
                steps.append(["resize", rng.choice(_SIZES), rng.choice(_SIZES)])
            if rng.random() < 0.3:
                steps.append([rng.choice(("screen", "peek", "repaint", "bar", "colors", "modes"))])
        steps += [["screen"], ["repaint"], ["bar"]]
        return steps

    def run(self, steps: list[Step]) -> None:
        """The input, shown."""
        rows, cols = (int(str(one)) for one in steps[0][1:])
        output = Output(Emulator(self._library, cols, rows), _NoFaults())
        assert output.emulator is not None
        try:
            for step in steps[1:]:
                self._do(output, output.emulator, step)
        finally:
            output.emulator.close()

    def _do(self, output: Output, emulator: Emulator, step: Step) -> None:
        match step[0]:
            case "read":
                output.take(str(step[1]).encode("latin-1"))
            case "resize":
                rows, cols = (int(str(one)) for one in step[1:])
                output.resize(rows=rows, cols=cols, width_px=0, height_px=0)
            case "screen" | "peek":
                self._look(output, emulator, is_peek=step[0] == "peek")
            case "repaint":
                self._repaint(output, emulator)
            case "bar":
                self._show_bar(output, emulator)
            case "colors":
                output.see_colors()
                output.uncolor()
            case _:
                assert output.wants_marks() in {True, False}
                emulator.modes()

    def _look(self, output: Output, emulator: Emulator, *, is_peek: bool) -> None:
        found = output.screen(peek=is_peek)
        assert found is not None
        assert len(found["rows"]) == emulator.rows  # type: ignore[arg-type]
        json.dumps(found, ensure_ascii=False).encode()
        (answer,) = FrameReader().feed(render_frame({"screen": found, "title": output.title()}))
        screen = parse_screen(answer["screen"])
        screen.joined()
        for name, rules in self._rules.items():
            self._detect(name, rules, screen)

    def _detect(self, name: str, rules: object, screen: Screen) -> None:
        detector = Detector(rules, agent=AgentName(name), started_at=NOW, zone=UTC)  # type: ignore[arg-type]
        detector.look(screen, now=NOW, at_offset=0)
        read_input(rules, screen)  # type: ignore[arg-type]
        read_state(rules, screen)  # type: ignore[arg-type]

    def _repaint(self, output: Output, emulator: Emulator) -> None:
        copy = Emulator(self._library, emulator.cols, emulator.rows)
        try:
            copy.feed(output.repaint())
            # The library paints modes before text: marks that combine with a letter may join it or not then.
            if "".join(emulator.text()).isascii():
                assert copy.text() == emulator.text(), "a repaint shows something else"
        finally:
            copy.close()

    def _show_bar(self, output: Output, emulator: Emulator) -> None:
        """Above it are the agent's rows, in a terminal of the same size and in a smaller one."""
        for rows, cols in ((emulator.rows, emulator.cols), (3, 7)):
            shown, frame = Emulator(self._library, cols, rows), BarFrame()
            try:
                for holds_keys in (True, False):
                    bar = Bar(_BAR, holds_keys=holds_keys)
                    shown.feed(output.paint_frame(frame, bar, rows=rows, cols=cols))
                    assert shown.text()[-1] == fit(_BAR, cols), "something else stands in the bar's row"
                assert output.paint_frame(frame, bar, rows=rows, cols=cols) == b"", "nothing has changed"
            finally:
                shown.close()

    def close(self) -> None:
        """Nothing is open."""
