import os

import pytest

from agent_relay.domain.errors import ConfigurationError
from agent_relay.system.config_file import read_project_config, read_user_config, write_order
from tests.house import tree


@pytest.fixture
def folder(tmp_path: os.PathLike[str]) -> str:
    """A private configuration folder."""
    path = os.path.join(tmp_path, "config")
    os.mkdir(path, 0o700)
    return path


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def test_no_file_means_the_defaults(folder: str) -> None:
    """The first start must not ask for a configuration."""
    assert read_user_config(folder).patience_s == 300
    assert read_project_config(folder).order == ()


def test_an_error_names_the_file_and_the_key(folder: str) -> None:
    """The user goes straight to the line that is off."""
    _write(f"{folder}/config.toml", '[agents.ada]\nbudget_tokens = "many"\n')
    with pytest.raises(ConfigurationError, match=r"config\.toml: agents\.ada\.budget_tokens: "):
        read_user_config(folder)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[[budgets]]\nper = 1\n", "See docs/budgets.md."),
        ("[export]\ninterval_s = 0\n", "See docs/exporters.md."),
        ("[context]\nwhat = 1\n", "See docs/context.md."),
        ("[redaction]\nwhat = 1\n", "See docs/packet-format.md."),
        ("[handoff]\nwhat = 1\n", "See docs/context.md."),
        ("[agents.ada]\nwhat = 1\n", "See docs/config.md."),
        ("patience_s = 0\n", "See docs/config.md."),
    ],
)
def test_an_error_names_the_page_that_tells_of_the_table(folder: str, text: str, hint: str) -> None:
    """Another page would send the user astray."""
    _write(f"{folder}/config.toml", text)
    with pytest.raises(ConfigurationError) as caught:
        read_user_config(folder)
    assert caught.value.hint == hint
    page = hint.removeprefix("See ").removesuffix(".")
    assert os.path.exists(os.path.join(tree.CHECKOUT, page))


def test_a_misspelt_key_is_said_to_be_none(folder: str) -> None:
    """The words of a library say nothing to somebody who swapped two letters."""
    _write(f"{folder}/config.toml", 'ordr = ["ada"]\n')
    with pytest.raises(ConfigurationError) as caught:
        read_user_config(folder)
    assert caught.value.sentence == f"{folder}/config.toml: ordr: there is no setting of this name"


def test_what_is_no_toml_is_one_sentence(folder: str) -> None:
    """A stack trace of a parser helps nobody."""
    _write(f"{folder}/config.toml", "order = [")
    with pytest.raises(ConfigurationError, match=r"config\.toml is not TOML: ") as caught:
        read_user_config(folder)
    assert caught.value.hint == "How TOML is written: https://toml.io"
    with open(f"{folder}/config.toml", "wb") as stream:
        stream.write(b'relay_key = "\xff"')
    with pytest.raises(ConfigurationError, match="is not UTF-8 text"):
        read_user_config(folder)


def test_a_pipe_in_the_place_of_the_file_is_an_error_not_a_wait(folder: str) -> None:
    """Opening a FIFO would hang every command."""
    os.mkfifo(f"{folder}/config.toml")
    with pytest.raises(ConfigurationError, match="is not a regular file"):
        read_user_config(folder)


def test_a_project_is_heard_on_order_only(folder: str) -> None:
    """Whatever comes with a clone decides little."""
    _write(f"{folder}/.agent-relay/config.toml", 'order = ["bob"]\n')
    assert read_project_config(folder).order == ("bob",)
    _write(f"{folder}/.agent-relay/config.toml", 'relay_key = "ctrl-a"\n')
    with pytest.raises(ConfigurationError, match="relay_key"):
        read_project_config(folder)


def test_the_order_is_written_and_the_users_other_lines_stay(folder: str) -> None:
    """The file is the user's; a command changes the one line it is about."""
    _write(
        f"{folder}/config.toml",
        '# mine\npatience_s = 60\norder = ["ada"] # old\n\n[agents.ada]\nmodel = "m"\n',
    )
    write_order(folder, ("bob", "ada"))
    with open(f"{folder}/config.toml", encoding="utf-8") as stream:
        assert (
            stream.read() == '# mine\npatience_s = 60\norder = ["bob", "ada"]\n\n[agents.ada]\nmodel = "m"\n'
        )


def test_the_order_is_written_where_there_was_no_file_or_no_order(folder: str) -> None:
    """The new line goes above the first table, where it means what it says."""
    write_order(folder, ("ada",))
    assert read_user_config(folder).order == ("ada",)
    _write(f"{folder}/config.toml", '[agents.ada]\nmodel = "m"\n')
    write_order(folder, ("bob",))
    assert read_user_config(folder).order == ("bob",)
    assert read_user_config(folder).agents["ada"].model == "m"


def test_an_order_over_several_lines_is_replaced_whole(folder: str) -> None:
    """Left-over lines would make the file unreadable."""
    _write(f"{folder}/config.toml", 'order = [\n  "ada", # first\n  "bob",\n]\npatience_s = 9\n')
    write_order(folder, ("bob",))
    assert (read_user_config(folder).order, read_user_config(folder).patience_s) == (("bob",), 9)


def test_a_file_that_cannot_be_edited_safely_is_left_alone(folder: str) -> None:
    """An order inside another string only looks like one."""
    text = 'relay_key = """\norder = []\n"""\n'
    _write(f"{folder}/config.toml", text)
    with pytest.raises(ConfigurationError):
        write_order(folder, ("ada",))
    with open(f"{folder}/config.toml", encoding="utf-8") as stream:
        assert stream.read() == text


def test_a_name_that_is_no_agents_is_refused(folder: str) -> None:
    """A quote in a name would change the file's meaning."""
    with pytest.raises(ConfigurationError, match="not an agent's name"):
        write_order(folder, ('a"]\nrelay_key="ctrl-a"',))


def test_a_pattern_that_takes_longer_than_its_text_is_long_is_refused_by_name(folder: str) -> None:
    """It would be asked of every secret that is found, by commands that nothing ends at a limit."""
    _write(f"{folder}/config.toml", "[redaction]\nallow_patterns = ['sk-test-[a-z]+', '(?:[a-z]+)+!']\n")
    with pytest.raises(ConfigurationError) as refused:
        read_user_config(folder)
    assert refused.value.sentence.startswith(
        f"{folder}/config.toml: redaction.allow_patterns: '(?:[a-z]+)+!' takes longer than its text is long"
    )
    assert refused.value.code == 78
