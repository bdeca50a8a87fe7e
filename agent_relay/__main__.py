"""The entry point of the `agent-relay` command; what is imported depends on the first word only."""

import sys


def main() -> int:
    """Run the command in `sys.argv` and return its exit status; imports depend on its first word only."""
    words = sys.argv[1:]
    if words in (["--version"], ["-V"]):
        from agent_relay import __version__

        sys.stdout.write(f"agent-relay {__version__}\n")
        return 0
    from agent_relay.faces.cli.dispatch import guard, leave, run

    if words:
        return leave(words, run(words))
    from agent_relay.faces.shell.entry import open_shell

    return guard(open_shell, words)


if __name__ == "__main__":
    sys.exit(main())
