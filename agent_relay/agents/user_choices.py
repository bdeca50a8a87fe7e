"""Read what a user chooses for an agent: a session and an effort by arguments, tool servers by files.

A run that must have no tools is given the arguments that switch those servers off.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence

from agent_relay.agents.source_paths import fill_text
from agent_relay.domain.documents.adapter import Launch, UserServers
from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.files import read_bounded


def chooses_session(launch: Launch, words: Sequence[str]) -> bool:
    """Return whether the user's own arguments name a native session, so that ours must not."""
    return any(word.partition("=")[0] in launch.session_flags for word in words)


def find_effort(launch: Launch, words: Sequence[str]) -> str:
    """Return the level of effort the user's own arguments name last; empty if none that others have, too."""
    found = ""
    for place in range(len(words)):
        for form in launch.effort_words:
            *before, last = form.removesuffix("{effort}").split(" ")
            said = [*words[place : place + len(before) + 1]]
            if said[:-1] == before and said[-1].startswith(last):
                level = said[-1].removeprefix(last).strip("\"'")
                found = level if level in launch.efforts else ""
    return found


_LIMIT_BYTES = 1 << 20
_LONGEST = 100_000
"""An argument of a process may have 128 KiB at most."""


def build_server_args(
    spec: UserServers, values: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the arguments that switch off every server the user's files name; none where none is named.

    Raises RelayError if a file cannot be read or understood: which servers it names is not known then.
    """
    names = dict.fromkeys(_list_names(spec, values, environ))
    if not names:
        return ()
    each = ",".join(spec.each.replace("{server}", _quote(name)) for name in names)
    if len(each.encode()) > _LONGEST:
        raise RelayError("more tool servers are configured than can be switched off")
    return tuple(word.replace("{servers}", each) for word in spec.args)


def _list_names(spec: UserServers, values: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[str]:
    for form in spec.paths:
        path = fill_text(form, values, environ)
        if path is None:
            continue
        try:
            tables = tomllib.loads(read_bounded(path, limit_bytes=_LIMIT_BYTES).decode())
        except FileNotFoundError:
            continue
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RelayError(f"{path} cannot be understood") from error
        found = tables.get(spec.table)
        yield from found if isinstance(found, dict) else ()


def _quote(name: str) -> str:
    """Return the name as a string of TOML; a brace in it is no placeholder's."""
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f").replace("{", "\\u007b")
