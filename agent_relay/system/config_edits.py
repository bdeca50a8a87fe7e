"""Changes to the user's `config.toml` that leave every other line of it as the user wrote it."""

import json
import re

from agent_relay.domain.errors import ConfigurationError
from agent_relay.system.config import editing, parse_user_config, read_edited, write_config
from agent_relay.system.documents import parse_toml

_HEADER = re.compile(r"^[ \t]*\[")
_RESUME = re.compile(r"^[ \t]*resume_at_reset[ \t]*=[^\n]*$", re.MULTILINE)
_MODEL = re.compile(r"^[ \t]*model[ \t]*=")


def write_model(folder: str, agent: str, model: str) -> None:
    """The agent is started with `model` from now on, empty for its own.

    Raises ConfigurationError where the file cannot be understood or edited safely.
    """
    with editing(folder) as path:
        before = read_edited(path)
        known = parse_toml(before, path)
        wanted = _want(known, agent, model)
        if not model and f"[agents.{agent}]" not in before:
            return
        line = f"model = {json.dumps(model)}" if model else ""
        after = _replace(before, f"[agents.{agent}]", line)
        if parse_toml(after, path) != wanted:
            what = (
                f"Write this into it: [agents.{agent}] {line}" if line else f"Take it out of [agents.{agent}]"
            )
            raise ConfigurationError(f"cannot edit {path} safely", hint=what)
        parse_user_config(wanted, path)
        write_config(path, after, before=before)


def write_resume(folder: str) -> None:
    """Work goes on by itself at the first reset from now on, whenever every agent rested.

    Raises ConfigurationError where the file cannot be understood or edited safely.
    """
    line = "resume_at_reset = true"
    with editing(folder) as path:
        before = read_edited(path)
        known = parse_toml(before, path)
        if known.get("resume_at_reset") is True:
            return
        wanted = {**known, "resume_at_reset": True}
        after, found = _RESUME.subn(line, before, count=1)
        if not found:
            after = f"{line}\n{before}"
        if parse_toml(after, path) != wanted:
            raise ConfigurationError(
                f"cannot edit {path} safely", hint=f"Add this line above the first [table]: {line}"
            )
        parse_user_config(wanted, path)
        write_config(path, after, before=before)


def _want(config: dict[str, object], agent: str, model: str) -> dict[str, object]:
    """What the file should say then."""
    agents = config.get("agents")
    known = agents if isinstance(agents, dict) else {}
    wishes = known.get(agent)
    kept = {key: value for key, value in wishes.items() if key != "model"} if isinstance(wishes, dict) else {}
    return {**config, "agents": {**known, agent: {**kept, **({"model": model} if model else {})}}}


def _replace(text: str, header: str, line: str) -> str:
    """`text` with `line` as the table's model; an empty one takes it out."""
    lines = text.splitlines()
    at = next((number for number, one in enumerate(lines) if one.split("#")[0].strip() == header), None)
    if at is None:
        return "\n".join([*lines, *([""] if lines else []), header, *([line] if line else []), ""])
    end = next((n for n in range(at + 1, len(lines)) if _HEADER.match(lines[n])), len(lines))
    kept = [one for one in lines[at + 1 : end] if not _MODEL.match(one)]
    return "\n".join([*lines[: at + 1], *([line] if line else []), *kept, *lines[end:], ""])
