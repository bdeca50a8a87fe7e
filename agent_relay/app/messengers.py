"""What leaves the daemon for programs outside it: notifications for the desktop and for webhooks."""

import contextlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_relay.app.threads import OwnThread
from agent_relay.domain.errors import RelayError
from agent_relay.system.desktop import show_on_desktop

if TYPE_CHECKING:
    from agent_relay.system.webhook import Webhook

_log = logging.getLogger(__name__)


class OutsideNotifiers:
    """One instance for all sessions. Nobody waits for any of it; what fails is a line in the log."""

    def __init__(self) -> None:
        self._desktop = OwnThread("desktop")
        self._webhooks: dict[str, Webhook] = {}

    def post(self, address: str, body: Mapping[str, object]) -> None:
        """Queue `body` for the webhook at `address`."""
        webhook = self._webhooks.get(address)
        if webhook is None:
            # Few have one, and its library takes longer to load than a start may wait.
            from agent_relay.logic.exporting.delivering import Receiver
            from agent_relay.system.deliveries import Deliveries
            from agent_relay.system.webhook import Webhook

            receiver = Receiver("webhook", "The webhook of `notify`", "notification", "notifications")
            webhook = Webhook(address, Deliveries(receiver, _log_delivery))
            webhook.start()
            self._webhooks[address] = webhook
        webhook.put(body)

    async def show(self, environ: Mapping[str, str], title: str, text: str) -> None:
        """The desktop of that environment shows it, where there is one."""
        with contextlib.suppress(RelayError):
            failed = await self._desktop.run(show_on_desktop, environ, title, text)
            if failed:
                _log.warning("notification-failed to=desktop why=%s", failed)

    def close(self) -> None:
        """No thread of it is waited for."""
        self._desktop.close()


def _log_delivery(line: str) -> None:
    _log.warning("notification-delivery to=webhook %s", line)
