"""Signals as a login shell leaves them, whoever started the tests."""

import signal

# Python ignores these itself, and gives programs it starts the default again.
PYTHONS_OWN = {signal.SIGPIPE, signal.SIGXFSZ}


def restore_default_signals() -> None:
    """Undo what `nohup`, `make test &` in a script and some CI runners leave ignored or blocked.

    An ignored signal is inherited by every program a test starts, and the product rightly respects that:
    it would not end where a test sends SIGINT or SIGHUP and waits for the end.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in signal.valid_signals() - PYTHONS_OWN:
        if signal.getsignal(number) is signal.SIG_IGN:
            own = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if own else signal.SIG_DFL)
