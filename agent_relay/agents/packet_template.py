"""Read an adapter's packet template and build the function that renders packets with it."""

import os
from collections.abc import Callable

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.errors import ConfigurationError
from agent_relay.packet.render import SHARED, compile_template, render_packet
from agent_relay.system.disk.files import read_bounded

_NAME = "resume.md.j2"
_LIMIT_BYTES = 256 << 10


def build_renderer(loaded: LoadedAdapter, folder: str) -> Callable[[ResumePacket], str]:
    """Build a function from a packet to the text its target reads; the template is compiled now, once.

    An adapter without a template of its own gets the shared one. `folder` is the session's, to name in
    the text. Raises ConfigurationError if a template cannot be used.
    """
    templates = {SHARED: _read(os.path.join(find_builtin_folder(), _NAME))}
    own = os.path.join(loaded.folder, loaded.adapter.template)
    if os.path.lexists(own) or loaded.adapter.template != _NAME:
        templates[_NAME] = _read(own)
    title = loaded.adapter.title
    template = compile_template(templates, title=title)
    return lambda packet: render_packet(packet, template=template, title=title, folder=folder)


def _read(path: str) -> str:
    try:
        return read_bounded(path, limit_bytes=_LIMIT_BYTES).decode()
    except FileNotFoundError:
        raise ConfigurationError(f"the packet template {path} is missing") from None
    except UnicodeDecodeError as problem:
        raise ConfigurationError(f"the packet template {path} is not UTF-8") from problem
