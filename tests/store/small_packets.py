"""Small packets to publish, and processes that die while they write one."""

import os
from collections.abc import Callable
from datetime import UTC, datetime

from agent_relay.domain.documents.packet import Reason, ResumePacket

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def build(sequence: int = 1, target: str = "beta", packet_id: str = "P1", **more: object) -> ResumePacket:
    """A small packet."""
    return ResumePacket.model_validate(
        {
            "packet_id": packet_id,
            "session_id": "01JD0000000000000000000000",
            "sequence": sequence,
            "created_at": AT,
            "previous_agent": "alpha",
            "target_agent": target,
            "checkpoint_reason": Reason.MANUAL,
            "task": "make it work",
            **more,
        }
    )


def die_at(step: int, do: Callable[[], object]) -> int:
    """How a process ended that does this and dies at its nth system change."""
    child = os.fork()
    if child == 0:
        counted = 0

        def wrap(real: Callable[..., object]) -> Callable[..., object]:
            def dying(*arguments: object, **named: object) -> object:
                nonlocal counted
                counted += 1
                if counted == step:
                    os._exit(9)
                return real(*arguments, **named)

            return dying

        for name in ("rename", "fsync", "symlink", "write", "open", "mkdir"):
            setattr(os, name, wrap(getattr(os, name)))
        try:
            do()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
