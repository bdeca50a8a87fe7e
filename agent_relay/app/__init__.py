"""Sessions at work: the host of a session, its handoffs, their recovery."""

from agent_relay.app.application import Application, open_app

__all__ = ["Application", "open_app"]
