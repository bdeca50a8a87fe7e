"""Build the renderer of packets that an adapter's template gives."""

import os
from collections.abc import Callable

from agent_relay.agents import adapter_folders
from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.errors import ConfigurationError
from agent_relay.packet.render import SHARED, compile_template, render_packet
from agent_relay.system.disk.files import read_bounded

_TEMPLATE_BYTES = 256 << 10


def build_renderer(
    loaded: LoadedAdapter, folder: str, *, has_session: bool = True
) -> Callable[[ResumePacket], str]:
    """Build a function from a packet to the text its target reads; the template is compiled now, once.

    An adapter without a template of its own gets the shared one. `folder` is the session's, to name in
    the text; without a session nothing can be recalled from it. Raises ConfigurationError if a template
    cannot be used.
    """
    templates = {
        SHARED: _read_template(os.path.join(adapter_folders.find_builtin_folder(), adapter_folders.TEMPLATE))
    }
    own = os.path.join(loaded.folder, loaded.adapter.template)
    if adapter_folders.has_template(loaded.folder, loaded.adapter.template):
        templates[adapter_folders.TEMPLATE] = _read_template(own)
    title = loaded.adapter.title
    template = compile_template(templates, title=title)
    return lambda packet: render_packet(
        packet, template=template, title=title, folder=folder, has_session=has_session
    )


def _read_template(path: str) -> str:
    try:
        return read_bounded(path, limit_bytes=_TEMPLATE_BYTES).decode()
    except FileNotFoundError:
        raise ConfigurationError(f"the packet template {path} is missing") from None
    except UnicodeDecodeError as problem:
        raise ConfigurationError(f"the packet template {path} is not UTF-8") from problem
