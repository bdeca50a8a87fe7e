"""Read what the arguments that a user gives an agent choose: its session, its level of effort."""

from collections.abc import Sequence

from agent_relay.domain.documents.adapter import Launch


def chooses_session(launch: Launch, words: Sequence[str]) -> bool:
    """Return whether the user's own arguments name a native session, so that ours must not."""
    return any(word.partition("=")[0] in launch.session_flags for word in words)


def find_effort(launch: Launch, words: Sequence[str]) -> str:
    """Return the level of effort the user's own arguments name last; empty if none that others have, too."""
    found = ""
    for place in range(len(words)):
        for form in launch.effort_words:
            *before, last = form.removesuffix("{effort}").split(" ")
            said = [*words[place : place + len(before) + 1]]
            if said[:-1] == before and said[-1].startswith(last):
                level = said[-1].removeprefix(last).strip("\"'")
                found = level if level in launch.efforts else ""
    return found
