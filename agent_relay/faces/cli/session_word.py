"""Which session a word of the command line means."""

from agent_relay.domain.errors import WrongUseError


def find_session(text: str, views: list[dict[str, object]]) -> dict[str, object]:
    """The one session whose id begins or ends with `text`. Raises WrongUseError for none or several."""
    wanted = text.upper()
    found = [view for view in views if wanted and _matches(str(view["session"]), wanted)]
    if len(found) == 1:
        return found[0]
    what = "no session is" if not found else f"{len(found)} sessions are"
    raise WrongUseError(f"{what} named {text[:40]!r}", hint="See: agent-relay sessions")


def _matches(session: str, wanted: str) -> bool:
    return session.startswith(wanted) or session.endswith(wanted)
