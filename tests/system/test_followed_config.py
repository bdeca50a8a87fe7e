import os
import resource

from agent_relay.system.config_file import ReloadingConfig, write_model, write_order


def test_a_changed_file_counts_at_once(tmp_path: os.PathLike[str]) -> None:
    """An order given while the daemon runs must not wait for its next start."""
    folder = f"{tmp_path}/config"
    followed = ReloadingConfig(folder)
    assert followed.get().order == ()
    assert followed.find_problem() is None
    write_order(folder, ("understudy", "demo"))
    assert followed.get().order == ("understudy", "demo")
    write_model(folder, "demo", "large")
    assert followed.get().get_agent("demo").model == "large"


def test_a_file_that_cannot_be_meant_changes_nothing(tmp_path: os.PathLike[str]) -> None:
    """A file is saved half-way through an edit; the daemon goes on with what it knew."""
    folder = f"{tmp_path}/config"
    write_order(folder, ("demo",))
    followed = ReloadingConfig(folder)
    with open(f"{folder}/config.toml", "w", encoding="utf-8") as stream:
        stream.write("order = [")
    assert followed.get().order == ("demo",)
    problem = followed.find_problem()
    assert problem is not None
    assert problem.sentence.startswith(f"{folder}/config.toml is not TOML")
    os.unlink(f"{folder}/config.toml")
    assert followed.get().order == ()
    assert followed.find_problem() is None


def test_a_file_that_could_not_be_opened_is_read_once_it_can_be(tmp_path: os.PathLike[str]) -> None:
    """For want of descriptors a good change was called a mistake, and no session began until the next one."""
    folder = f"{tmp_path}/config"
    followed = ReloadingConfig(folder)
    write_order(folder, ("demo",))
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, most))
    try:
        problem = followed.find_problem()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))
    assert problem is not None
    assert "Too many open files" in problem.sentence
    assert followed.find_problem() is None
    assert followed.get().order == ("demo",)


def test_a_change_that_keeps_size_and_time_of_writing_counts(tmp_path: os.PathLike[str]) -> None:
    """Neither tells of a file that a tool restored with its times, or that may be read only now."""
    folder = f"{tmp_path}/config"
    write_order(folder, ("demo",))
    followed = ReloadingConfig(folder)
    path = f"{folder}/config.toml"
    found = os.stat(path)
    with open(path, "r+", encoding="utf-8") as stream:
        stream.write("ORDER")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert followed.find_problem() is not None
