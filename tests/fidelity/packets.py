"""The packets of a case for two targets, as `agent-relay packet build` makes them, and their scores."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from agent_relay.agents.catalog import read_catalog
from agent_relay.domain.facts import Facts
from agent_relay.faces.cli.session.packet_transfer import build_offline
from agent_relay.packet.recall.search import Search
from agent_relay.packet.recall.turns import PastTurn, build_turns
from agent_relay.packet.render import prefix_lines
from agent_relay.redact.known_values import EMPTY_ALLOW_LIST
from agent_relay.sources.session_records import build_cleaner
from agent_relay.sources.transcript_reader import read_whole_facts
from agent_relay.system.config_file import gather_secrets
from agent_relay.system.disk.folders import get_folders
from tests.fidelity.scoring import Score, Total, score_text
from tests.fidelity.script import CASES, list_cases, load_case
from tests.fidelity.transcripts import LaidOut, lay_out
from tests.fidelity.truths import Question

TARGETS = {
    "claude": ("codex", "gemini"),
    "codex": ("claude", "opencode"),
    "gemini": ("claude", "codex"),
    "opencode": ("claude", "codex"),
}

_FOUND = 3
"""Turns that `agent-relay recall` prints."""

Recall = Callable[[LaidOut, Question], str]
"""What `agent-relay recall` finds in the transcript with the question as its query."""


@contextmanager
def own_folder() -> Iterator[str]:
    """A folder whose path has the same length every time: paths stand in packets, and room is counted."""
    with tempfile.TemporaryDirectory(prefix="fidelity-") as folder:
        yield folder


def build_recall() -> Recall:
    """How a successor looks a question up: the question is the query, of a transcript that is read once."""
    return _TranscriptSearch().recall


@dataclass(slots=True)
class _TranscriptSearch:
    """What `agent-relay recall` does for a session of one leg; answers are kept for the next packet."""

    _facts: dict[str, Facts] = field(default_factory=dict)
    _turns: dict[str, list[PastTurn]] = field(default_factory=dict)
    _answers: dict[tuple[str, str], str] = field(default_factory=dict)

    def recall(self, laid: LaidOut, question: Question) -> str:
        """The best turns' excerpts, as they are printed."""
        key = (laid.transcript, question.question)
        if key not in self._answers:
            self._answers[key] = self._search(laid, question.question)
        return self._answers[key]

    def _search(self, laid: LaidOut, query: str) -> str:
        agent, path = laid.case.agent, laid.transcript
        if path not in self._turns:
            spec = read_catalog(get_folders()).get(agent).adapter.transcript
            assert spec is not None
            self._facts[path] = read_whole_facts(spec.reader, path, agent=agent)
            self._turns[path] = build_turns(self._facts[path], leg=1)
        search = Search(self._turns[path], query)
        known = gather_secrets(laid.repository, os.environ, cwd=laid.repository)
        clean = build_cleaner([self._facts[path]], known=known, allow=EMPTY_ALLOW_LIST)
        found = [(turn, search.excerpt(turn, clean)) for turn, _ in search.rank(_FOUND)]
        return "\n\n".join(f"Turn {agent}:{turn.number}\n{prefix_lines(text)}" for turn, text in found)


def build_text(laid: LaidOut, target: str) -> tuple[str, str]:
    """The packet to `target`: the text it would read, and the document it is made of."""
    packet, text = build_offline(laid.case.agent, laid.transcript, target, repo=laid.repository)
    shown = packet.model_dump(mode="json", by_alias=True, exclude_none=True)
    return text if text.endswith("\n") else f"{text}\n", json.dumps(shown, ensure_ascii=False)


@dataclass(slots=True)
class Workshop:
    """Lays cases out below `folder` and scores their packets, each once.

    Without `talk` the sessions hold only what matters; with `recall` a successor may look questions up.
    """

    folder: str
    cases: str = CASES
    talk: bool = True
    recall: Recall | None = None
    _laid: dict[str, LaidOut] = field(default_factory=dict)
    _scored: dict[tuple[str, str], tuple[str, Score]] = field(default_factory=dict)

    def lay_out(self, name: str) -> LaidOut:
        """The case `name` on disk."""
        if name not in self._laid:
            self._laid[name] = lay_out(load_case(name, self.cases), self.folder, talk=self.talk)
        return self._laid[name]

    def score(self, name: str, target: str) -> tuple[str, Score]:
        """The packet of the case `name` to `target`, and how it did."""
        if (name, target) not in self._scored:
            laid, recall = self.lay_out(name), self.recall
            text, document = build_text(laid, target)
            lookup = partial(recall, laid) if recall else None
            score = score_text(text, laid.case.truth, document=document, lookup=lookup)
            self._scored[name, target] = (text, score)
        return self._scored[name, target]

    def total_with_recall(self, place: int, recall: Recall) -> Total:
        """The same packets as `total` judges, to successors who look up what they do not know."""
        scores = []
        for name in list_cases(self.cases):
            laid = self.lay_out(name)
            text, _ = self.score(name, TARGETS[laid.case.agent][place])
            scores.append(score_text(text, laid.case.truth, lookup=partial(recall, laid)))
        return Total(tuple(scores))

    def total(self, place: int, names: list[str] | None = None) -> Total:
        """The packets of all cases to their first (0) or second (1) target."""
        scores = []
        for name in names or list_cases(self.cases):
            target = TARGETS[self.lay_out(name).case.agent][place]
            scores.append(self.score(name, target)[1])
        return Total(tuple(scores))
