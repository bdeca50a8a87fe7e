"""The one family of errors: a sentence for the user, one hint, and the exit code it becomes."""


class ExitCode:
    """Exit statuses of commands; the same for every face.

    Plain numbers: every hot command imports this module, and an enum would cost it a third of a bare
    Python.
    """

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    NOBODY_AVAILABLE = 3
    UNTRUSTED_DATA = 65
    DAEMON_UNREACHABLE = 69
    OUR_BUG = 70
    CONFIGURATION = 78
    INTERRUPTED = 130


class RelayError(Exception):
    """A failure in one sentence: what could not be done, to what, and why; `hint` says what to try."""

    code = ExitCode.FAILED

    def __init__(self, sentence: str, *, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint


class WrongUseError(RelayError):
    """The command line is wrong, or the request is not possible now."""

    code = ExitCode.WRONG_USE


class AtWorkError(WrongUseError):
    """The session is at work on something else; a caller that can wait may ask again."""


class TurnOverError(WrongUseError):
    """The turn that a request was about has ended; nothing has changed."""


class NobodyAvailableError(RelayError):
    """Every agent of the roster rests, is missing or is not signed in."""

    code = ExitCode.NOBODY_AVAILABLE


class UntrustedDataError(RelayError):
    """A packet, journal, transcript or message is not what its format says."""

    code = ExitCode.UNTRUSTED_DATA


class DaemonUnreachableError(RelayError):
    """The daemon does not answer and could not be started."""

    code = ExitCode.DAEMON_UNREACHABLE


class ConfigurationError(RelayError):
    """A configuration file or adapter holds an invalid value."""

    code = ExitCode.CONFIGURATION


class StaleOwnerError(RelayError):
    """A write came from a leg that no longer owns its session; nothing was written."""

    code = ExitCode.UNTRUSTED_DATA


class OurBugError(RelayError):
    """Something of ours broke; a crash report without contents was written, and the hint says where."""

    code = ExitCode.OUR_BUG
