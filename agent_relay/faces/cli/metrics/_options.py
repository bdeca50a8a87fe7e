"""The options of `agent-relay metrics`, parsed without typer if they are spelled as usual."""

import msgspec

_FLAGS = ("--chain", "--all", "--json", "--csv")
_VALUES = ("--by", "--since", "--agent")


class MetricsOptions(msgspec.Struct, frozen=True):
    """The options given, each named like the parameter of the command's function."""

    session: str = ""
    chain: bool = False
    everything: bool = False
    by: str = "session"
    since: str = ""
    agent: str = ""
    as_json: bool = False
    as_csv: bool = False


def parse_options(words: list[str]) -> MetricsOptions | None:
    """Return the options; `None` for words that need typer: help, mistakes, rare spellings."""
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
