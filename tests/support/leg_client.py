"""What a test needs of a holder: typing into it and reading its screen, from plain synchronous code."""

import os
import socket

from agent_relay.terminal.holder.wire import FrameReader, render_frame


def ask_holder(leg_folder: str, op: str, **fields: object) -> dict[str, object]:
    """The holder's answer to one request."""
    folder = os.open(leg_folder, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            # Waits for room among those not yet let in: with a limit it would be refused at once.
            connection.connect(f"/proc/self/fd/{folder}/sock")
            connection.settimeout(60)
            connection.sendall(render_frame({"op": op, "id": 1, **fields}))
            reader = FrameReader()
            while data := connection.recv(1 << 16):
                for message in reader.feed(data):
                    if message.get("id") == 1:
                        assert message["ok"], message
                        return message
            raise ConnectionResetError(f"the holder in {leg_folder} ended before it answered")
    finally:
        os.close(folder)


def type_into(leg_folder: str, data: bytes) -> None:
    """`data` reaches the agent as typed."""
    ask_holder(leg_folder, "input", data=data.decode("latin-1"))


def read_screen(leg_folder: str) -> str:
    """The rows the agent shows, one line each."""
    screen = ask_holder(leg_folder, "screen", peek=True)["screen"]
    assert isinstance(screen, dict)
    return "\n".join(str(row[0] if isinstance(row, list) else row) for row in screen["rows"])
