"""The options of `agent-relay metrics`, parsed without typer where they are spelled as usual."""

import msgspec

_FLAGS = ("--chain", "--all", "--json", "--csv")
_VALUES = ("--by", "--since", "--agent")


class MetricsOptions(msgspec.Struct, frozen=True):
    """What was asked; each word under the name the command's function has for it."""

    session: str = ""
    chain: bool = False
    everything: bool = False
    by: str = "session"
    since: str = ""
    agent: str = ""
    as_json: bool = False
    as_csv: bool = False


def parse_options(words: list[str]) -> MetricsOptions | None:
    """What the command makes of the words; `None` for what is left to it: help, mistakes, rare spellings."""
    flags, values, rest = set[str](), dict[str, str](), iter(words)
    for word in rest:
        if word in _FLAGS:
            flags.add(word)
            continue
        name, value = (word, next(rest, "-")) if word in _VALUES else ("", word)
        if value.startswith("-") or (not name and name in values):
            return None
        values[name] = value
    return MetricsOptions(
        session=values.get("", ""),
        chain="--chain" in flags,
        everything="--all" in flags,
        by=values.get("--by", "session"),
        since=values.get("--since", ""),
        agent=values.get("--agent", ""),
        as_json="--json" in flags,
        as_csv="--csv" in flags,
    )
