"""What holds for some versions of an agent only, as its adapter's data says."""

from pydantic import Field

from agent_relay.domain.document import Strict
from agent_relay.domain.versions import is_within


class VersionRange(Strict):
    """Versions of the agent from `from` on and before `before`; either may be left out."""

    from_version: str = Field(default="", alias="from")
    before: str = ""

    def contains(self, version: str) -> bool:
        """Return whether a known version is one of these."""
        return is_within(version, start=self.from_version, before=self.before)

    def may_contain(self, version: str) -> bool:
        """Return whether it is one of these, or may be: an empty version is not known."""
        return not version or self.contains(version)
