"""Name the files and folders in a project's `.agent-relay`; nothing is looked at."""

FOLDER = ".agent-relay"
SESSIONS = "sessions"
RESUME = "resume"
JOURNAL = "journal.jsonl"
_BELOW_ROOT = f"/{FOLDER}/{SESSIONS}/"


def get_project_folder(root: str) -> str:
    """Return relay's folder in the project at `root`."""
    return f"{root}{FOLDER}" if root in ("", "/") else f"{root}/{FOLDER}"


def get_sessions_folder(root: str) -> str:
    """Return the folder that holds the project's sessions."""
    return f"{get_project_folder(root)}/{SESSIONS}"


def get_session_folder(root: str, session: str) -> str:
    """Return the session's folder."""
    return f"{get_sessions_folder(root)}/{session}"


def get_journal_path(root: str, session: str) -> str:
    """Return the path of the session's journal."""
    return f"{get_session_folder(root, session)}/{JOURNAL}"


def get_resume_folder(session_folder: str) -> str:
    """Return the folder of the session's packets."""
    return f"{session_folder}/{RESUME}"


def find_root_above(path: str) -> str:
    """Return the root of the project in which `path` is, or is in, a session's folder; empty for none."""
    root, found, _ = path.partition(_BELOW_ROOT)
    return (root or "/") if found else ""
