"""Where things may be sent to."""

import pytest

from agent_relay.domain.documents.config import ExportConfig, check_address
from agent_relay.domain.documents.handwritten import MistakeError


def test_https_and_this_machine_may_be_told() -> None:
    """What leaves the machine is encrypted."""
    for address in (
        "https://hooks.example/a/b?c=d", "https://hooks.example:8443", "http://127.0.0.1:4318",
        "http://127.9.9.9/x", "http://localhost:4318/v1/metrics", "http://[::1]:4318",
    ):  # fmt: skip
        assert check_address(address) == address
        assert ExportConfig(webhook=address, otlp=address).webhook == address


def test_anything_else_may_not() -> None:
    """A name that only looks like this machine's, a password in an address, another scheme."""
    for address in (
        "http://hooks.example", "http://127.0.0.1.evil.example", "http://localhost.evil.example/",
        "http://127.0.0.1@evil.example/", "https://user:password@hooks.example", "https://",
        "file:///etc/passwd", "ftp://127.0.0.1/", "https://hooks.example/a b",
        "https://hooks.example\r\nX: y", "",
    ):  # fmt: skip
        with pytest.raises(ValueError, match="neither https nor http to this machine"):
            check_address(address)
        if address:
            with pytest.raises(MistakeError):
                ExportConfig(otlp=address)


def test_nothing_is_exported_unless_somebody_says_so() -> None:
    """No telemetry: the defaults are nobody and nowhere."""
    wanted = ExportConfig()
    assert (wanted.prometheus_port, wanted.otlp, wanted.webhook) == (0, "", "")
