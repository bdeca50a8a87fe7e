"""The working trees this daemon has claimed, each from before its first session until its last ended."""

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable

from agent_relay.domain.values import Owner
from agent_relay.session.ownership import OwnerRelation, find_owner_relation
from agent_relay.store.tree_owner import (
    TreeOwnedError,
    claim_tree,
    close_claim,
    is_claim_gone,
    is_claim_of,
    release_tree,
)

_OURS_S = 15.0
"""How long an earlier daemon may take to release its claim: longer than it waits for its own end."""
_LOOK_S = 0.1


class TreeClaims:
    """The claims of one daemon. `is_used` tells whether a session that has not ended is at work in a tree."""

    def __init__(self, owner: Owner, is_used: Callable[[str], bool]) -> None:
        self._owner = owner
        self._is_used = is_used
        self._claims: dict[str, int] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._entering: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def enter(self, root: str, *, by_hand: bool = False) -> AsyncIterator[None]:
        """Claim the tree while a session is opened in it, and for as long as one is at work there.

        Raises TreeOwnedError if it is somebody else's; see `claim_tree` for `by_hand`.
        """
        self._entering[root] += 1
        try:
            await self._claim(root, by_hand=by_hand)
            yield
        finally:
            self._entering[root] -= 1
            await self.tidy(root)

    async def tidy(self, root: str) -> None:
        """Release the claim of a tree in which none of our sessions is at work any more."""
        async with self._turns[root]:
            if root in self._claims and not self._entering[root] and not self._is_used(root):
                await asyncio.to_thread(release_tree, root, self._claims.pop(root))

    async def follow_move(self, old: str, new: str) -> None:
        """Move the claim of a renamed tree to its new path."""
        async with self._turns[old], self._turns[new]:
            claim = self._claims.pop(old, None)
            if claim is None:
                return
            if new in self._claims or not await asyncio.to_thread(is_claim_of, claim, new):
                close_claim(claim)
            else:
                self._claims[new] = claim

    def close(self) -> None:
        """Close the claims; their trees stay recorded as ours, for the next daemon."""
        for claim in self._claims.values():
            close_claim(claim)
        self._claims.clear()

    async def _claim(self, root: str, *, by_hand: bool) -> None:
        async with self._turns[root]:
            held = self._claims.get(root)
            if held is not None:
                if not await asyncio.to_thread(is_claim_gone, held):
                    return
                # Its folder was deleted under us, and others would find nobody there.
                close_claim(self._claims.pop(root))
            until = asyncio.get_running_loop().time() + _OURS_S
            while True:
                try:
                    self._claims[root] = await asyncio.to_thread(
                        claim_tree, root, self._owner, by_hand=by_hand
                    )
                except TreeOwnedError as error:
                    is_ours = (
                        error.owner.is_known
                        and find_owner_relation(error.owner, self._owner) is OwnerRelation.SELF
                    )
                    if not is_ours or asyncio.get_running_loop().time() >= until:
                        raise
                else:
                    return
                await asyncio.sleep(_LOOK_S)
