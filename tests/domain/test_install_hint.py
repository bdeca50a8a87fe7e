import pytest

from agent_relay.domain.text.hints import render_install


@pytest.mark.parametrize(
    ("prefix", "base", "settings", "command"),
    [
        (
            "/home/ada/.local/share/pipx/venvs/agent-relay",
            "/usr",
            "",
            "pipx inject agent-relay 'agent-relay[web]'",
        ),
        (
            "/home/ada/.local/share/uv/tools/agent-relay",
            "/usr",
            "home = /usr/bin\nuv = 0.8.3\n",
            "uv pip install --python /x/python 'agent-relay[web]'",
        ),
        ("/home/ada/venv", "/usr", "home = /usr/bin\n", "/x/python -m pip install 'agent-relay[web]'"),
        ("/usr", "/usr", "", "/x/python -m pip install --user 'agent-relay[web]'"),
    ],
)
def test_the_command_fits_how_relay_was_installed(
    prefix: str, base: str, settings: str, command: str
) -> None:
    """Another pip would put the libraries where this relay never looks."""
    found = render_install("web", prefix=prefix, base_prefix=base, executable="/x/python", settings=settings)
    assert found == command
