"""What a person may give a handoff along: what is expected, how urgent it is, who takes over if it fails."""

from dataclasses import dataclass, fields

PRIORITIES = ("low", "normal", "high", "urgent")


@dataclass(frozen=True, slots=True)
class Terms:
    """Everything is in the person's own words; empty where nothing was said.

    `needs` are capabilities the target's adapter has to declare. `questions` are what the agent that takes
    over after a failure is to answer first; `rollback` names it.
    """

    deliverables: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    priority: str = ""
    needs: tuple[str, ...] = ()
    rollback: str = ""
    questions: tuple[str, ...] = ()

    @property
    def expects(self) -> bool:
        """Whether somebody has to say that the handoff is complete, or failed."""
        return bool(self.deliverables or self.criteria)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said at all."""
        return not any(getattr(self, field.name) for field in fields(self))


NO_TERMS = Terms()
