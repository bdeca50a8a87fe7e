"""Load and check one adapter with its rules and its packet template; find whether its agent is here.

An agent is here if it is installed and signed in.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal

import msgspec

from agent_relay.agents.adapter_folders import ADAPTER_FILE, TEMPLATE, find_builtin_folder, has_template
from agent_relay.agents.agent_versions import find_installed_version
from agent_relay.agents.source_paths import fill_text
from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.values import AgentName, replace
from agent_relay.system.config_file import parse_document, parse_toml, read_text, read_toml
from agent_relay.system.disk.files import read_bounded
from agent_relay.system.pattern_cost import refuse_slow
from agent_relay.system.spawn import keep_absolute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.domain.documents.packet import ResumePacket

RULES_FILE = "rules.toml"
SCRIPTED = "scripted"
"""The capability of agents that only play a screenplay; nobody is handed to them unasked."""

Origin = Literal["built-in", "user", "project"]


class LoadedAdapter(msgspec.Struct, frozen=True):
    """An adapter with the folder its templates and rules are read from.

    `version` is the installed one that the adapter was fitted to, empty if it was not fitted.
    """

    adapter: Adapter
    folder: str
    rules_path: str
    origin: Origin
    version: str = ""


def load_adapter(folder: str, *, origin: Origin = "user") -> LoadedAdapter:
    """Load the adapter in one folder, whose name is the agent's. Raises ConfigurationError."""
    path = os.path.join(folder, ADAPTER_FILE)
    try:
        adapter = parse_document(read_toml(path), Adapter, path)
    except FileNotFoundError:
        raise ConfigurationError(f"{folder} is not an adapter: it has no {ADAPTER_FILE}") from None
    if adapter.name != os.path.basename(folder):
        raise ConfigurationError(f"{path}: name: {adapter.name!r} is not the name of its folder")
    if origin != "built-in":
        _check_patterns(_iterate_conditions(adapter), path)
    return LoadedAdapter(adapter, folder, os.path.join(folder, RULES_FILE), origin)


def list_default_roster(adapters: Mapping[AgentName, LoadedAdapter]) -> tuple[str, ...]:
    """Return the roster if neither user nor project sets one: all but the scripted agents, by name."""
    return tuple(name for name, found in adapters.items() if SCRIPTED not in found.adapter.capabilities)


def find_program(loaded: LoadedAdapter, environ: Mapping[str, str]) -> str | None:
    """Return the absolute path of the agent's program, `None` if it is not installed.

    A program written `./name` or `../other/name` is found from the adapter's own folder; any other is
    looked up in the absolute folders of `PATH`.
    """
    program = loaded.adapter.launch.program
    if program.startswith(("./", "../")):
        program = os.path.normpath(os.path.join(loaded.folder, program))
    found = shutil.which(program, path=keep_absolute(environ.get("PATH", os.defpath)))
    return os.path.abspath(found) if found else None


def fit_installed(loaded: LoadedAdapter, environ: Mapping[str, str], known: str) -> LoadedAdapter:
    """Return the adapter fitted to the version `find_installed_version` finds, also in `known`."""
    program = find_program(loaded, environ)
    package = loaded.adapter.package
    version = find_installed_version(program, package, known) if program is not None else ""
    return replace(loaded, adapter=loaded.adapter.fit(version), version=version)


def is_signed_in(adapter: Adapter, environ: Mapping[str, str], home: str) -> bool:
    """Return whether the agent probably can reach its provider: a key or its sign-in file exists.

    Only names are looked at; no credential is read. An agent that names neither needs neither. The paths may
    have `{home}`, `{NAME:-default}` and a leading `~/`; relative ones are the home's.
    """
    if not adapter.keys and not adapter.sign_in_files:
        return True
    if any(environ.get(name) for name in adapter.keys):
        return True
    return any(_exists(path, environ, home) for path in adapter.sign_in_files)


def _exists(path: str, environ: Mapping[str, str], home: str) -> bool:
    try:
        filled = fill_text(path, {"home": home}, environ)
    except ConfigurationError:
        return False
    return filled is not None and os.path.exists(os.path.join(home, filled.removeprefix("~/")))


_PATTERNS = frozenset(
    {"pattern", "starts", "stops", "above", "unless_below", "unless", "row", "anchor", "hint", "matches"}
)
_PAGE = "See docs/adapters.md."


def load_rules(loaded: LoadedAdapter) -> Rules:
    """Return the rules beside an adapter, fitted to its version; none if it has no such file.

    Raises ConfigurationError. A pattern that takes more than linear time is refused: it would block the
    daemon on a text that it is slow for. Patterns of built-in adapters were checked when they were written.
    Takes up to a second the first time; rules that have not changed since cost a read of the file.
    """
    try:
        text = read_text(loaded.rules_path)
    except FileNotFoundError:
        return Rules()
    return _parse(text, loaded.rules_path, is_trusted=loaded.origin == "built-in").fit(loaded.version)


@lru_cache(maxsize=32)
def _parse(text: str, path: str, *, is_trusted: bool) -> Rules:
    """Return the rules in `text`, read from `path`; measure the patterns unless `is_trusted`."""
    rules = parse_document(parse_toml(text, path), Rules, path)
    if not is_trusted:
        _check_patterns(iterate_patterns(rules), path)
        for place, pattern in iterate_patterns(rules):
            refuse_slow(pattern, f"{path}: {place}", hint=_PAGE, is_whole=is_whole(place))
    return rules


def _check_patterns(patterns: Iterable[tuple[str, str]], path: str) -> None:
    """Raise ConfigurationError if one cannot be compiled. Tests have compiled those that come with us."""
    for place, pattern in patterns:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            why = f"{pattern!r} is no pattern: {error}"
            raise ConfigurationError(f"{path}: {place}: {why}", hint=_PAGE) from None


def iterate_patterns(rules: Rules) -> Iterator[tuple[str, str]]:
    """Yield every pattern with its place, which names rules by ids: `limits.weekly.pattern`."""
    return _iterate(rules, "")


def _iterate_conditions(adapter: Adapter) -> Iterator[tuple[str, str]]:
    """Yield the patterns of an adapter: those of its conditions. What it calls a pattern is of file names."""
    return ((place, pattern) for place, pattern in _iterate(adapter, "") if ".matches." in place)


def is_whole(place: str) -> bool:
    """Return whether the pattern at `place` must match the whole of a text; others are searched for."""
    return place.endswith(".hint")


def _iterate(value: object, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            inner = f"{place}.{name}" if place else name
            found: object = getattr(value, name)
            if name == "matches" and isinstance(found, dict):
                yield from ((f"{inner}.{path}", pattern) for path, pattern in found.items())
            elif name in _PATTERNS and isinstance(found, str):
                if found:
                    yield inner, found
            else:
                yield from _iterate(found, inner)
    elif isinstance(value, tuple):
        for number, one in enumerate(value):
            name = getattr(one, "id", "") or getattr(one, "name", "") or str(number)
            yield from _iterate(one, f"{place}.{name}")


_TEMPLATE_BYTES = 256 << 10


def build_renderer(
    loaded: LoadedAdapter, folder: str, *, has_session: bool = True
) -> "Callable[[ResumePacket], str]":
    """Build a function from a packet to the text its target reads; the template is compiled now.

    An adapter without a template of its own gets the shared one. `folder` is the session's, to name in
    the text; without a session nothing can be recalled from it. Raises ConfigurationError if a template
    cannot be used.
    """
    # Most who load an adapter render no packet, and what compiles templates is dear to load.
    from agent_relay.packet.render import SHARED, compile_template, render_packet

    templates = {SHARED: _read_shared_template()}
    own = os.path.join(loaded.folder, loaded.adapter.template)
    if has_template(loaded.folder, loaded.adapter.template):
        templates[TEMPLATE] = _read_template(own)
    title = loaded.adapter.title
    template = compile_template(templates, title=title)
    return lambda packet: render_packet(
        packet, template=template, title=title, folder=folder, has_session=has_session
    )


def prepare_renderers() -> None:
    """Compile the template that all agents share, so that the first packet does not wait for it.

    Raises RelayError if the template cannot be read or used.
    """
    from agent_relay.packet.render import SHARED, compile_template

    compile_template({SHARED: _read_shared_template()}, title="all agents")


def _read_shared_template() -> str:
    return _read_template(os.path.join(find_builtin_folder(), TEMPLATE))


def _read_template(path: str) -> str:
    try:
        return read_bounded(path, limit_bytes=_TEMPLATE_BYTES).decode()
    except FileNotFoundError:
        raise ConfigurationError(f"the packet template {path} is missing") from None
    except UnicodeDecodeError as problem:
        raise ConfigurationError(f"the packet template {path} is not UTF-8") from problem
