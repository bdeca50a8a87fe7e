import os

import pytest

from agent_relay.domain.errors import ConfigurationError
from agent_relay.system.config_file import write_model, write_resume


def _edit(folder: str, before: str, agent: str, model: str) -> str:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(f"{folder}/config.toml", "w", encoding="utf-8") as stream:
        stream.write(before)
    write_model(folder, agent, model)
    with open(f"{folder}/config.toml", encoding="utf-8") as stream:
        return stream.read()


@pytest.mark.parametrize(
    ("before", "model", "after"),
    [
        ("", "large", '[agents.demo]\nmodel = "large"\n'),
        ("# mine\n", "large", '# mine\n\n[agents.demo]\nmodel = "large"\n'),
        (
            '[agents.demo]\nargs = ["-x"]\nmodel = "old"\n\n[context]\nmode = "ask"\n',
            "large",
            '[agents.demo]\nmodel = "large"\nargs = ["-x"]\n\n[context]\nmode = "ask"\n',
        ),
        ('[agents.demo]\nmodel = "old"\n', "", "[agents.demo]\n"),
        ("# mine\n", "", "# mine\n"),
    ],
    ids=["no file's words", "a comment", "other wishes", "taken out", "nothing to take out"],
)
def test_the_model_is_set_and_every_other_line_stays(
    tmp_path: os.PathLike[str], before: str, model: str, after: str
) -> None:
    """The file is the user's own; comments and order in it mean something to them."""
    assert _edit(f"{tmp_path}/config", before, "demo", model) == after


def test_a_file_written_otherwise_is_refused_and_left_alone(tmp_path: os.PathLike[str]) -> None:
    """TOML has many spellings for one table; what is not ours to understand is named instead of broken."""
    before = 'agents = { demo = { model = "old" } }\n'
    with pytest.raises(ConfigurationError):
        _edit(f"{tmp_path}/config", before, "demo", "large")
    with open(f"{tmp_path}/config/config.toml", encoding="utf-8") as stream:
        assert stream.read() == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "resume_at_reset = true\n"),
        ("# mine\n[context]\n", "resume_at_reset = true\n# mine\n[context]\n"),
        ('order = []\nresume_at_reset = "ask"   # hm\n', "order = []\nresume_at_reset = true\n"),
        ("resume_at_reset = true # yes\n", "resume_at_reset = true # yes\n"),
    ],
)
def test_consent_for_ever_is_one_line_and_every_other_stays(
    tmp_path: os.PathLike[str], before: str, after: str
) -> None:
    """The key that means always writes what the user would have written."""
    os.makedirs(f"{tmp_path}/config", mode=0o700)
    path = f"{tmp_path}/config/config.toml"
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(before)
    write_resume(f"{tmp_path}/config")
    with open(path, encoding="utf-8") as stream:
        assert stream.read() == after


def test_consent_that_cannot_be_written_safely_names_the_line(tmp_path: os.PathLike[str]) -> None:
    """A text that only looks like the setting must not be changed in its place."""
    os.makedirs(f"{tmp_path}/config", mode=0o700)
    with open(f"{tmp_path}/config/config.toml", "w", encoding="utf-8") as stream:
        stream.write('redaction.allow = ["""\nresume_at_reset = false\n"""]\n')
    with pytest.raises(ConfigurationError, match="safely") as refused:
        write_resume(f"{tmp_path}/config")
    assert refused.value.hint == "Add this line above the first [table]: resume_at_reset = true"
