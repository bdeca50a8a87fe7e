"""What the user wants exported, and to where: nothing unless they say so."""

import re

from pydantic import Field, field_validator

from agent_relay.domain.document import Strict

_LOOPBACK = r"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])"
_ADDRESS = re.compile(rf"(?:https://[^\s/@?#:]+|http://{_LOOPBACK})(?::[0-9]{{1,5}})?(?:[/?][^\s#]*)?")


def check_address(text: str) -> str:
    """`text` where it is an address things may be sent to. Raises ValueError.

    https, or http to this machine; no user or password in it, which would stand in process lists and logs.
    """
    if _ADDRESS.fullmatch(text) is None:
        raise ValueError(f"{text[:80]!r} is neither https nor http to this machine, or has a password in it")
    return text


class ExportConfig(Strict):
    """The `[export]` of the user's `config.toml`: what `agent-relay export` does without options.

    `prometheus_port` is where figures are served on 127.0.0.1, `otlp` the collector they are pushed to,
    `webhook` who is told of events; 0 and empty mean nobody. Figures are read every `interval_s` seconds.
    """

    prometheus_port: int = Field(default=0, ge=0, le=65535)
    otlp: str = ""
    webhook: str = ""
    interval_s: float = Field(default=30, ge=1, le=3600)

    @field_validator("otlp", "webhook")
    @classmethod
    def _addresses_are_safe(cls, text: str) -> str:
        return check_address(text) if text else text
