"""A limit no test outlives: it strikes again while the test cleans up, and at last ends the process."""

import faulthandler
import os
import signal
from typing import NoReturn

import pytest
import pytest_timeout

# A fixture that ends programs and waits for them takes seconds; one that needs longer has hung.
CLEAN_UP_S = 60.0
STRIKES = 3


def end_process(item: pytest.Item) -> NoReturn:
    """Say which test did not end, past whatever captures the output, and end this process with status 1."""
    capture = item.config.pluginmanager.getplugin("capturemanager")
    if capture:
        capture.suspend_global_capture(item)
    terminal = item.config.get_terminal_writer()
    terminal.line(f"\n{item.nodeid} did not end after its limit; its process is ended")
    terminal.flush()
    os._exit(1)


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: pytest_timeout.Settings) -> bool | None:
    """Interrupt `item` at its limit and every `CLEAN_UP_S` after it; end this process after `STRIKES`.

    The plugin's own timer strikes once: what a `finally` or a fixture waits for after it has no limit.
    Return None, and leave the timer to the plugin, where that does not work by SIGALRM.
    """
    if settings.method != "signal":
        return None
    clean_up_s = float(os.environ.get("TESTS_CLEAN_UP_S", CLEAN_UP_S))
    strikes = 0

    def strike(_number: int, _frame: object) -> None:
        nonlocal strikes
        strikes += 1
        if strikes > STRIKES:
            end_process(item)
        pytest_timeout.timeout_sigalrm(item, settings)

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.cancel_dump_traceback_later()

    item.cancel_timeout = cancel  # type: ignore[attr-defined]  # where the plugin looks for it
    signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout, clean_up_s)
    # A main thread that never comes back to Python runs no handler; this needs none.
    faulthandler.dump_traceback_later(settings.timeout + (STRIKES + 1) * clean_up_s, exit=True)
    return True
