"""The `.agent-relay` folder is made once, kept private, and never taken from somebody else."""

import errno
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.store.project import check_project, make_session_folder, open_project

SESSION = "01JD0000000000000000000000"


def mode(path: Path) -> int:
    """The permission bits of `path`."""
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_new_project_is_private_ignored_and_marked(tmp_path: Path) -> None:
    """A packet must never be committed or read by others by accident."""
    folder = tmp_path / ".agent-relay"
    assert open_project(str(tmp_path)) == str(folder)
    assert mode(folder) == 0o700
    assert (folder / ".gitignore").read_text() == "*\n"
    assert json.loads((folder / "agent-relay.json").read_text()) == {
        "schema": "agent-relay/project",
        "version": 1,
    }
    assert mode(folder / "agent-relay.json") == 0o600


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    """The second session of a repository finds the first one's folder, the user's own rules included."""
    open_project(str(tmp_path))
    (tmp_path / ".agent-relay" / ".gitignore").write_text("*\n!keep\n")
    before = (tmp_path / ".agent-relay").stat().st_mtime_ns
    open_project(str(tmp_path))
    assert (tmp_path / ".agent-relay").stat().st_mtime_ns == before
    assert (tmp_path / ".agent-relay" / ".gitignore").read_text() == "*\n!keep\n"


def test_another_product_with_the_same_folder_keeps_its_files(tmp_path: Path) -> None:
    """`connection.json` and `step-outputs/` belong to somebody else: they survive byte for byte."""
    folder = tmp_path / ".agent-relay"
    (folder / "step-outputs").mkdir(parents=True)
    (folder / "connection.json").write_text("{}")
    (folder / ".gitignore").write_text("connection.json\n")
    folder.chmod(0o755)
    make_session_folder(str(tmp_path), SESSION)
    assert (folder / "connection.json").read_text() == "{}"
    assert (folder / ".gitignore").read_text() == "connection.json\n"
    assert mode(folder) == 0o755
    assert sorted(path.name for path in folder.iterdir()) == [
        ".gitignore",
        "connection.json",
        "sessions",
        "step-outputs",
    ]
    assert (folder / "sessions" / ".gitignore").read_text() == "*\n"
    assert mode(folder / "sessions") == 0o700
    assert check_project(str(tmp_path))
    before = (folder / "sessions").stat().st_mtime_ns
    open_project(str(tmp_path))
    assert (folder / "sessions").stat().st_mtime_ns == before


@pytest.mark.size("test")
def test_another_products_sessions_are_not_hidden_from_git(tmp_path: Path) -> None:
    """Its new files must not vanish from `git status` because relay worked here; ours stay out of it."""
    folder = tmp_path / ".agent-relay"
    (folder / "sessions" / "theirs").mkdir(parents=True)
    (folder / "sessions" / "theirs" / "log").write_text("new")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    make_session_folder(str(tmp_path), SESSION)
    (folder / "sessions" / SESSION / "journal.jsonl").write_text("{}")
    status = ["git", "-C", str(tmp_path), "status", "--porcelain", "-uall"]
    found = subprocess.run(status, check=True, capture_output=True, text=True).stdout
    assert found == "?? .agent-relay/sessions/theirs/log\n"


def test_a_folder_without_our_mark_is_not_our_project(tmp_path: Path) -> None:
    """Read-only commands must not mistake the other product's folder for ours."""
    assert not check_project(str(tmp_path))
    (tmp_path / ".agent-relay").mkdir()
    (tmp_path / ".agent-relay" / "connection.json").write_text("{}")
    assert not check_project(str(tmp_path))


def test_a_symlink_is_refused(tmp_path: Path) -> None:
    """A cloned repository could make us write anywhere."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".agent-relay").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RelayError, match="is a symlink"):
        open_project(str(tmp_path))
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("name", ["sessions", f"sessions/{SESSION}", f"sessions/{SESSION}/resume"])
def test_a_symlink_further_down_is_refused(tmp_path: Path, name: str) -> None:
    """Same at every level we walk through."""
    open_project(str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / ".agent-relay" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RelayError, match="is a symlink"):
        make_session_folder(str(tmp_path), SESSION)
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    """It is the user's file, so it stays."""
    (tmp_path / ".agent-relay").write_text("mine")
    with pytest.raises(RelayError, match="is a file where relay needs a folder"):
        open_project(str(tmp_path))
    assert (tmp_path / ".agent-relay").read_text() == "mine"


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner could exchange packets under our hands."""
    owner = os.geteuid()
    (tmp_path / ".agent-relay").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(RelayError, match=f"belongs to user {owner}, not to you"):
        open_project(str(tmp_path))


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        (b"not json", "is not relay's"),
        (b"[]", "is not relay's"),
        (b'{"schema": "other/thing", "version": 1}', "is not relay's"),
        (b"[" * 60_000, "is not relay's"),
        (b"\xff", "is not relay's"),
        # An old program writing into a new format would spoil both.
        (b'{"schema": "agent-relay/project", "version": 2}', "newer agent-relay"),
        (None, "is a symlink"),
    ],
    ids=range(7),
)
def test_a_mark_that_is_not_ours_is_refused(tmp_path: Path, mark: bytes | None, why: str) -> None:
    """Whatever wrote it may own the rest as well."""
    (tmp_path / ".agent-relay").mkdir()
    path = tmp_path / ".agent-relay" / "agent-relay.json"
    if mark is None:
        path.symlink_to("/etc/hostname")
    else:
        path.write_bytes(mark)
    with pytest.raises(UntrustedDataError, match=why):
        open_project(str(tmp_path))


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    """/proc refuses everybody, root included, as a read-only disk does."""
    with pytest.raises(RelayError, match=r"cannot write /proc/self/\.agent-relay: No such file"):
        open_project("/proc/self")
    missing = tmp_path / "missing"
    with pytest.raises(RelayError, match=os.strerror(errno.ENOENT)):
        open_project(str(missing))


def test_a_crash_after_any_step_of_making_it_is_healed(tmp_path: Path) -> None:
    """The folder alone, or the folder and its ignore file, are finished by the next start."""
    (tmp_path / ".agent-relay").mkdir()
    open_project(str(tmp_path))
    (tmp_path / ".agent-relay" / "agent-relay.json").unlink()
    open_project(str(tmp_path))
    assert check_project(str(tmp_path))
    assert (tmp_path / ".agent-relay" / ".gitignore").read_text() == "*\n"


def test_a_session_has_a_private_folder_of_its_own(tmp_path: Path) -> None:
    """Journal and packets live there; a restored backup with open permissions is closed again."""
    folder = Path(make_session_folder(str(tmp_path), SESSION))
    assert folder == tmp_path / ".agent-relay" / "sessions" / SESSION
    assert (folder / "resume").is_dir()
    folder.chmod(0o755)
    assert make_session_folder(str(tmp_path), SESSION) == str(folder)
    assert mode(folder) == 0o700


@pytest.mark.parametrize("name", ["", "..", "../../etc", "01jd0000000000000000000000", "a" * 26 + "/.."])
def test_a_session_name_cannot_lead_elsewhere(tmp_path: Path, name: str) -> None:
    """Session ids come over a socket."""
    with pytest.raises(UntrustedDataError):
        make_session_folder(str(tmp_path), name)


def test_a_folder_somebody_was_killed_in_while_making_it_is_ours_all_the_same(tmp_path: Path) -> None:
    """Taken for another product's, it would stand in the user's git status for ever."""
    folder = tmp_path / ".agent-relay"
    folder.mkdir(0o700)
    (folder / f".tmp-{1 << 30}-0123456789ab").touch()
    open_project(str(tmp_path))
    assert sorted(os.listdir(folder)) == [".gitignore", "agent-relay.json"]
    assert (folder / ".gitignore").read_text() == "*\n"


def commit_planted(root: Path, files: dict[str, str]) -> None:
    """A repository at `root` whose history brings `files` along, as a clone of a stranger's does."""
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run([*git, "add", "-fA"], check=True)
    subprocess.run([*git, "commit", "-qm", "as cloned"], check=True)


def list_addable(root: Path) -> list[str]:
    """What `git add -A` would publish of the working tree at `root`."""
    command = ["git", "-C", str(root), "add", "-An"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


MARK = '{"schema": "agent-relay/project", "version": 1}'


@pytest.mark.size("test")
@pytest.mark.parametrize(
    "planted",
    [
        {".agent-relay/agent-relay.json": MARK},
        {".agent-relay/.gitignore": "!*\n"},
        {".agent-relay/.gitignore": "!*\n!**\n", ".agent-relay/agent-relay.json": MARK},
        {".agent-relay/sessions/agent-relay.json": MARK},
        {".agent-relay/sessions/.gitignore": "!*\n!*/\n!**\n"},
        {".agent-relay/sessions/.gitignore": "!*\n", ".agent-relay/sessions/agent-relay.json": MARK},
        {".gitignore": "!.agent-relay\n!.agent-relay/**\n", ".agent-relay/agent-relay.json": MARK},
        {".agent-relay/sessions/README": "", ".agent-relay/agent-relay.json": MARK},
    ],
    ids=" ".join,
)
def test_no_file_a_clone_brings_makes_git_publish_a_session(tmp_path: Path, planted: dict[str, str]) -> None:
    """Journals and packets hold conversations: `git add -A` must not take them along, whatever was cloned."""
    commit_planted(tmp_path, planted)
    folder = Path(make_session_folder(str(tmp_path), SESSION))
    (folder / "journal.jsonl").write_text("{}\n")
    (folder / "resume" / "0001-codex.md").write_text("the whole task\n")
    assert list_addable(tmp_path) == []


@pytest.mark.size("test")
@pytest.mark.parametrize("rules", ["!*\n", "", "resume\n"])
def test_a_session_that_git_would_publish_ignores_itself_again(tmp_path: Path, rules: str) -> None:
    """One made by an earlier version, or whose rules something changed, is mended before more is written."""
    commit_planted(tmp_path, {".agent-relay/agent-relay.json": MARK})
    folder = Path(make_session_folder(str(tmp_path), SESSION))
    (folder / "journal.jsonl").write_text("{}\n")
    (folder / ".gitignore").write_text(rules)
    make_session_folder(str(tmp_path), SESSION)
    assert (folder / ".gitignore").read_text() == "*\n"
    assert list_addable(tmp_path) == []


def test_a_sessions_rules_are_never_written_through_a_link(tmp_path: Path) -> None:
    """A planted link at `.gitignore` would make relay write into a file of the user's."""
    (tmp_path / "mine").write_text("mine")
    folder = Path(make_session_folder(str(tmp_path), SESSION))
    (folder / ".gitignore").unlink()
    (folder / ".gitignore").symlink_to(tmp_path / "mine")
    make_session_folder(str(tmp_path), SESSION)
    assert (tmp_path / "mine").read_text() == "mine"
    assert (folder / ".gitignore").read_text() == "*\n"
    assert not (folder / ".gitignore").is_symlink()
