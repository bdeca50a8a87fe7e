"""How an agent's process ended and how far a handoff came, as people say it."""

from agent_relay.domain.session import Step

_ENDS = {"lost": "was lost", "unstarted": "could not be started"}
_STEPS = {
    Step.BEGUN: "while its predecessor was stopped",
    Step.STOPPED: "while its packet was built",
    Step.PUBLISHED: "before its successor was started",
    Step.SPAWNING: "while its successor was started",
    Step.SPAWNED: "before its successor had its packet",
    Step.DELIVERED: "after its successor had its packet",
}


def name_end(how: str) -> str:
    """Return what follows an agent's name: `was lost`; `exited` and `stopped` are words already."""
    return _ENDS.get(how, how)


def name_step(step: str) -> str:
    """Return when a handoff failed that had come as far as `step`: `while its packet was built`."""
    if step == "deliver":
        return _STEPS[Step.SPAWNED]
    try:
        return _STEPS[Step(step)]
    except ValueError:
        return f"after {step}"
