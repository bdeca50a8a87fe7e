"""A repository that somebody else made runs nothing while relay looks at it, and results are right."""

import ast
import os
import shutil
from pathlib import Path

import pytest

from agent_relay.agents.adapters import find_program
from agent_relay.domain.values import TreeFile
from agent_relay.faces.cli.doctor import examine_versions
from agent_relay.system.git.apply import apply_plan, plan_apply
from agent_relay.system.git.run import LIMIT_BYTES, ask_git
from agent_relay.system.git.snapshot import count_lines, read_changes, read_patch, write_snapshot
from agent_relay.system.git.tree_state import find_root, read_tree
from agent_relay.system.git.worktree import remove_worktree
from tests.house.tree import parse, python_files, walk
from tests.support.git_traps import ATTRIBUTES, FILTERS, MERGES, VARIABLES, Traps, touch_all
from tests.support.race_places import place
from tests.support.real_launch import get_adapter
from tests.system.repositories import Git, by_path, make_repository

pytestmark = pytest.mark.size("test")


@pytest.fixture
def traps(tmp_path: Path) -> Traps:
    """Programs that tell when they are run."""
    return Traps(tmp_path / "traps")


def make_dirty(root: Path, git: Git) -> Path:
    """A repository whose attributes name filters, with files that git has to look into."""
    make_repository(root, git)
    (root / "c.dat").write_text("data\n")
    (root / ".gitattributes").write_text(ATTRIBUTES)
    git(root, "add", ".")
    git(root, "commit", "-qm", "attributes")
    (root / "a.txt").write_text("one\nTWO\nthree\n")
    touch_all(root)
    return root


def embed(outer: Path, git: Git, tmp_path: Path) -> Path:
    """A folder of files in `outer` that git takes for a repository of its own: a clone can bring such."""
    inner = make_dirty(tmp_path / "inner", git)
    place = outer / "vendor"
    shutil.move(inner / ".git", place)
    shutil.move(inner, place / "tree")
    git(place, "config", "--file", place / "config", "core.bare", "false")
    git(place, "config", "--file", place / "config", "core.worktree", str(place / "tree"))
    return place


@pytest.mark.parametrize("below", ["", "tree", "tree/deeper"])
def test_a_bare_repository_within_a_clone_is_a_folder_and_runs_nothing(
    tmp_path: Path, git: Git, traps: Traps, below: str
) -> None:
    """It needs nothing but files that any repository can hold, its settings included."""
    outer = make_repository(tmp_path / "outer", git)
    place = embed(outer, git, tmp_path)
    traps.plant(place / "config", git)
    traps.plant_hooks(place / "hooks")
    cwd = place / below
    cwd.mkdir(exist_ok=True)
    git(cwd, "status")
    assert "filter.t.clean" in traps.list_sprung()  # A user's plain git does run it.
    traps.forget()
    tree = read_tree(str(cwd))
    assert find_root(str(cwd)) == tree.root == str(outer)
    assert traps.list_sprung() == set()


def test_git_itself_refuses_a_bare_repository_within_a_clone(tmp_path: Path, git: Git) -> None:
    """Whatever else is asked of git in such a folder would read the settings there, too."""
    outer = make_repository(tmp_path / "outer", git)
    git(outer, "init", "--bare", "--quiet", outer / "vendor")
    (answer,) = ask_git(str(outer / "vendor"), ["rev-parse", "--git-dir"])
    assert (answer.status, b"safe.bareRepository" in answer.errors) == (128, True)


def test_a_git_that_knows_no_refusal_of_bare_repositories_runs_nothing_of_them_either(
    tmp_path: Path, git: Git, traps: Traps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands in for an old git drops the setting, as that would."""
    outer = make_repository(tmp_path / "outer", git)
    place = embed(outer, git, tmp_path)
    traps.plant(place / "config", git)
    stand_in = tmp_path / "bin" / "git"
    stand_in.parent.mkdir()
    drop = (
        'for one; do shift; [ "$one" = safe.bareRepository=explicit ] && one=a.b=c; set -- "$@" "$one"; done'
    )
    stand_in.write_text(f'#!/bin/sh\n{drop}\nexec {shutil.which("git")} "$@"\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stand_in.parent}:{os.environ['PATH']}")
    (answer,) = ask_git(str(place / "tree"), ("rev-parse", "--show-toplevel"))
    assert answer.output.decode().strip() == str(place / "tree")
    assert read_tree(str(place / "tree")).root == str(outer)
    assert traps.list_sprung() == set()


@pytest.mark.parametrize(
    "where",
    ["own", "included", "included where it applies", "elsewhere", "worktree's", "linked", "submodule's"],
)
def test_a_repository_s_own_settings_run_nothing_while_relay_looks(
    tmp_path: Path, git: Git, traps: Traps, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """An archive may bring any; a look at it comes before anybody says that they trust it."""
    root = make_dirty(tmp_path / "repository", git)
    config, hooks = root / ".git" / "config", root / ".git" / "hooks"
    match where:
        case "included":
            config = tmp_path / "more"
            git(root, "config", "include.path", str(config))
        case "included where it applies":
            config = tmp_path / "more"
            git(root, "config", f"includeIf.gitdir:{root}/.git.path", str(config))
        case "elsewhere":
            (root / ".gitattributes").rename(tmp_path / "attributes")
            hooks = tmp_path / "hooks"
            git(root, "config", "core.attributesFile", str(tmp_path / "attributes"))
            git(root, "config", "core.hooksPath", str(hooks))
        case "worktree's":
            git(root, "config", "extensions.worktreeConfig", "true")
            config = root / ".git" / "config.worktree"
        case "linked":
            git(root, "worktree", "add", "-q", "-f", tmp_path / "linked")
            root = tmp_path / "linked"
            touch_all(root)
        case "submodule's":
            make_dirty(tmp_path / "library", git)
            git(tmp_path / "library", "commit", "-qam", "all")
            git(root, "submodule", "add", "-q", tmp_path / "library", "library")
            config, hooks = root / ".git/modules/library/config", root / ".git/modules/library/hooks"
            touch_all(root)
    traps.plant(config, git)
    traps.plant_hooks(hooks)
    for name in VARIABLES:
        monkeypatch.setenv(name, traps.build(name))
    tree = read_tree(str(root))
    assert (tree.is_git, tree.is_whole, find_root(str(root))) == (True, True, str(root))
    assert traps.list_sprung() == set()
    git(root, "status")
    assert "filter.t.clean" in traps.list_sprung()


def test_the_user_s_own_filters_run_whatever_a_repository_calls_by_their_names(
    tmp_path: Path, git: Git, traps: Traps
) -> None:
    """Without git-lfs each of its files would be told as changed; another program of its name is not it."""
    upper = tmp_path / "upper"
    upper.write_text("#!/bin/sh\nexec tr a-z A-Z\n")
    upper.chmod(0o755)
    git(tmp_path, "config", "--global", "filter.t.clean", str(upper))
    git(tmp_path, "config", "--global", "filter.t.required", "true")
    root = make_repository(tmp_path / "repository", git)
    (root / ".gitattributes").write_text("*.txt filter=t\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "in capitals")
    for key in FILTERS:
        git(root, "config", key, traps.build(key))
    (root / "b.txt").write_text("B\n" * 20)
    touch_all(root)
    assert by_path(read_tree(str(root))) == {}
    (root / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    assert by_path(read_tree(str(root))) == {"a.txt": TreeFile("a.txt", "modified", 1, 0)}
    assert traps.list_sprung() == set()


def test_a_filter_whose_name_no_command_line_can_tell_is_left_alone_too(
    tmp_path: Path, git: Git, traps: Traps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An equals sign in it would have turned the setting into another one."""
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.abbrev")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "12")
    root = make_repository(tmp_path / "repository", git)
    git(root, "config", "filter.a=b.clean=.clean", traps.build("odd"))
    git(root, "config", "filter.a=b.clean", traps.build("odd"))
    (root / ".gitattributes").write_text("*.txt filter=a=b\na.txt filter=a=b.clean=\n")
    touch_all(root)
    assert read_tree(str(root)).is_whole
    assert traps.list_sprung() == set()


@pytest.mark.parametrize(
    "before",
    [
        f'[filter "long"]\n\tclean = "{"x" * (LIMIT_BYTES + 1)}"\n',
        "".join(f'[filter "f{number}"]\n\tclean = cat\n' for number in range(20_000)),
    ],
    ids=["one longer than is read", "more than variables can tell"],
)
def test_settings_too_long_to_be_read_hide_no_filter(
    tmp_path: Path, git: Git, traps: Traps, before: str
) -> None:
    """What stands behind the part that is read would run; nobody knows the tree's state without it."""
    root = make_dirty(tmp_path / "repository", git)
    with (root / ".git" / "config").open("a") as config:
        config.write(f'{before}[filter "t"]\n\tclean = {traps.build("behind")}\n')
    tree = read_tree(str(root))
    assert traps.list_sprung() == set()
    assert (tree.root, tree.dirty, tree.is_whole) == (str(root), None, False)
    assert tree.note == "git cannot read this repository: its settings name too many filters to be left alone"


@pytest.mark.parametrize("here", ["", ".", "bin"])
def test_a_program_of_the_repository_s_is_not_taken_for_git(
    tmp_path: Path, git: Git, traps: Traps, monkeypatch: pytest.MonkeyPatch, here: str
) -> None:
    """A colon too many in PATH stands for the folder one is in."""
    root = make_repository(tmp_path / "repository", git)
    (root / here).mkdir(exist_ok=True)
    shutil.copy(traps.build("git"), root / here / "git")
    shutil.copy(traps.build("git"), root / here / "claude")
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", f"{here}:{os.environ['PATH']}")
    assert read_tree(str(root)).is_git
    assert not [answer for answer in examine_versions(()) if str(root) in str(answer)]
    assert traps.list_sprung() == set()
    assert find_program(get_adapter("claude"), {"PATH": f"{here}:/nowhere"}) is None


def test_a_race_runs_nothing_but_what_makes_the_contents_of_files(
    tmp_path: Path, git: Git, traps: Traps
) -> None:
    """Who starts agents in a repository works in it: its filters and mergers do what they do for git."""
    root = make_dirty(tmp_path / "repository", git)
    embed(root, git, tmp_path)
    traps.plant(root / "vendor" / "config", git)
    git(root, "config", "--file", root / "vendor" / "config", "filter.t.clean", traps.build("embedded"))
    traps.plant(root / ".git" / "config", git)
    traps.plant_hooks(root / ".git" / "hooks")
    store, (first, second), _ = place(root, tmp_path / "race", git, "1-ann", "2-bob")
    base = write_snapshot(first, store)
    (Path(first) / "b.txt").write_text("b\n" * 20 + "more\n")
    (root / "b.txt").write_text("mine\n" + "b\n" * 20)
    result = write_snapshot(first, store, parent=base)
    assert [change.path for change in read_changes(str(root), store, base, result)] == ["b.txt"]
    assert count_lines(str(root), store, base, result) == (1, 1, 0)
    read_patch(str(root), store, base, result, ("--stat",))
    plan = plan_apply(str(root), store, base=base, result=result)
    apply_plan(str(root), store, plan, folder=str(tmp_path / "race"))
    for name, tree in (("1-ann", first), ("2-bob", second)):
        remove_worktree(str(root), tree, branch=f"race-{name}")
    assert traps.list_sprung() <= {*FILTERS, *MERGES}
    assert {"filter.t.clean", "filter.t.smudge", "merge.t.driver"} <= traps.list_sprung()


def test_a_worktree_of_a_bare_repository_is_a_work_tree_as_any(tmp_path: Path, git: Git) -> None:
    """Some keep their branches as folders beside a bare clone; only what is found by chance is refused."""
    make_repository(tmp_path / "origin", git)
    git(tmp_path, "clone", "-q", "--bare", tmp_path / "origin", tmp_path / "project")
    root = tmp_path / "project" / "main"
    git(tmp_path / "project", "worktree", "add", "-q", root, "main")
    (root / "a.txt").write_text("changed\n")
    assert find_root(str(root)) == str(root)
    assert by_path(read_tree(str(root))) == {"a.txt": TreeFile("a.txt", "modified", 1, 3)}
    _, (tree,), luggage = place(root, tmp_path / "race", git, "1-ann")
    assert (luggage.files, (Path(tree) / "a.txt").read_text()) == (1, "changed\n")
    assert remove_worktree(str(root), tree, branch="race-1-ann") == ""


def test_git_is_started_in_one_place() -> None:
    """What keeps it from running programs is written there."""
    found = set()
    for path in python_files("agent_relay"):
        for node in walk(parse(path)):
            if isinstance(node, ast.List | ast.Tuple) and node.elts:
                first = node.elts[0]
                if isinstance(first, ast.Constant) and first.value == "git":
                    found.add(path)
    assert found == {"agent_relay/system/git/run.py"}
