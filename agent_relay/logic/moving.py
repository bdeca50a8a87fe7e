"""Where a session's agents work once its repository was moved."""

from agent_relay.domain.place_event import SessionMoved
from agent_relay.domain.session import Session


def build_move(session: Session, root: str) -> SessionMoved:
    """Return the line that says that the session stands in `root` now, its working folder moved along."""
    is_below = session.cwd == session.root or session.cwd.startswith(f"{session.root}/")
    return SessionMoved(root, f"{root}{session.cwd[len(session.root) :]}" if is_below else session.cwd)
