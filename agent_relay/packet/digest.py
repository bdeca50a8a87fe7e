"""Condense a leg's record for an agent that writes the handoff document from it, and check that document.

The writer has not seen the conversation and reads only the digest, so anything its document names that is
not in the digest is made up, and is marked.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

from agent_relay.domain.documents.packet import Exchange, ResumePacket
from agent_relay.domain.facts import Facts, Message, TurnFacts, group_by_turn
from agent_relay.packet.extract.outcomes import find_telling_line
from agent_relay.packet.extract.requests import set_pastes_apart
from agent_relay.packet.extract.sentences import cut_words

MOST_BYTES = 60_000
"""The maximum size of a digest in UTF-8: about 20,000 tokens."""
NOT_RECORDED = "[not in the record]"
"""The mark after anything in a document that the digest does not have."""
_OPTION = re.compile(r"^\s{0,6}(?:[-*+•]|\(?[0-9A-Za-z][.):]|Option\b|\|)\s*\S")
_OPTION_LENGTH = 300
_EDIT_LINES = 2
_PASTED = "pasted by the user, and written by others"


class _Detail(msgspec.Struct, frozen=True):
    """The most characters to quote of each kind of text; 0 leaves it out."""

    user: int
    answer: int
    options: int
    output: int
    edits: int


_DETAILS = (
    _Detail(user=12_000, answer=900, options=12, output=600, edits=20),
    _Detail(user=4000, answer=400, options=8, output=300, edits=10),
    _Detail(user=1500, answer=160, options=6, output=160, edits=4),
    _Detail(user=600, answer=0, options=4, output=100, edits=2),
    _Detail(user=300, answer=0, options=0, output=0, edits=0),
    _Detail(user=120, answer=0, options=0, output=0, edits=0),
    _Detail(user=50, answer=0, options=0, output=0, edits=0),
)
"""Levels of detail for ever longer records: agents' words are shortened first, the user's last."""


def build_digest(facts: Facts, before: ResumePacket | None = None, *, written: str = "") -> str:
    """Condense what was said and done, in chronological order, to at most 60 kB.

    `facts` are a leg's own, without what relay typed, `before` is the packet it was given, and `written` a
    document its agent was asked for earlier. The result is empty if there is nothing to report.
    """
    if not facts.conversation and before is None:
        return ""
    facts, pastes = set_pastes_apart(facts)
    text = ""
    for detail in _DETAILS:
        turns = _tell_turns(facts, pastes.turns, detail)
        said = [*_tell_before(before, detail), *turns, *_tell_end(facts, pastes.waiting, written)]
        text = "\n\n".join(said)
        if len(text.encode("utf-8", "replace")) <= MOST_BYTES:
            return text
    data = text.encode("utf-8", "replace")
    half = MOST_BYTES // 2 - 50
    # Whole lines only: secrets are searched for afterwards, and no rule recognises half of one.
    head, tail = data[:half].rpartition(b"\n")[0], data[-half:].partition(b"\n")[2]
    gap = f"\n[… {len(data) - len(head) - len(tail)} bytes left out …]\n"
    return head.decode("utf-8", "ignore") + gap + tail.decode("utf-8", "ignore")


def _tell_before(before: ResumePacket | None, detail: _Detail) -> Iterator[str]:
    """Yield the sections on what the agent was handed when it took over."""
    if before is None:
        return
    yield f"# What {before.previous_agent or 'the agent before'} handed over"
    if before.task:
        yield f"Task, in the user's words:\n{_set_in(_cut(before.task, detail.user))}"
    if before.task_pasted:
        yield f"{_PASTED}:\n{_quote(before.task_pasted, detail.user)}"
    if before.constraints:
        yield "Rules of the user:\n" + "\n".join(f"- {_set_in(one.text)}" for one in before.constraints)
    yield from _tell_ledger(before, detail)
    if before.narrative:
        yield f"Its document:\n{_set_in(_cut(before.narrative, 6000))}"
    if before.plan:
        yield "Plan:\n" + "\n".join(f"- [{step.status}] {step.text}" for step in before.plan)
    waiting = before.unprocessed_prompt
    if waiting:
        yield f"Prompt of the user that was not answered:\n{_set_in(_cut(waiting.text, detail.user))}"
    if waiting and waiting.pasted:
        yield f"{_PASTED}:\n{_quote(waiting.pasted, detail.user)}"


def _tell_ledger(before: ResumePacket, detail: _Detail) -> Iterator[str]:
    """Yield the lines on what earlier legs said and did, and decisions that no exchange contains."""
    if before.exchanges:
        yield "What was said and done:\n" + "\n".join(_tell_exchange(one, detail) for one in before.exchanges)
    decided = [one for one in before.decisions if not one.in_ledger]
    if decided:
        yield "Decided:\n" + "\n".join(
            f"- {one.summary}{f': {one.why}' if one.why else ''}" for one in decided
        )


def _tell_exchange(one: Exchange, detail: _Detail) -> str:
    """Render an exchange of an earlier leg: the user's words, what they answer, and what followed."""
    agent = one.source.agent if one.source else "the agent"
    marks = [f"{agent}, turn {one.source.turn}"] if one.source and one.source.turn else []
    marks += ["settled"] if one.is_settled else []
    if one.ended_how:
        marks.append(f"{one.ended_how} later{f': {one.ended_by}' if one.ended_by else ''}")
    if one.revisited_in:
        marks.append(f"see turn {one.revisited_in}: {one.revisited_by}")
    head = f"user: {_set_in(_cut(one.said, detail.user))}" if one.said else f"{agent} at work"
    parts = (
        ("in answer to", _cut(one.on, detail.answer) if detail.answer else ""),
        (_PASTED, one.pasted),
        ("failed", one.failed if detail.output else ""),
        ("measured", one.measured),
        (agent, _cut(one.told, detail.answer) if detail.answer else ""),
    )
    told = f" ({'; '.join(marks)})" if marks else ""
    lines = [f"- {head}{told}"]
    return "\n".join([*lines, *(f"  {name}: {' '.join(text.split())}" for name, text in parts if text)])


def _tell_turns(facts: Facts, pasted: Mapping[int, str], detail: _Detail) -> Iterator[str]:
    """Yield each turn: the user's words, what failed, what was edited, what was offered and answered.

    `pasted` is, by turn, text by others that the user pasted.
    """
    yield f"# What {facts.agent} was asked and did"
    for turn in group_by_turn(facts):
        runs, edits = _list_runs(turn, detail), _list_edits(turn)
        if not (turn.prompt or turn.answers or runs or edits):
            continue
        lines = [f"## Turn {turn.number}"]
        if turn.prompt:
            lines.append(f"user: {_set_in(_cut(turn.prompt.text, detail.user))}")
        if turn.number in pasted:
            quoted = _quote(pasted[turn.number], detail.user)
            lines.append(f"{_PASTED}:\n{quoted}")
        lines += runs[-2 * detail.edits :] if detail.output else []
        lines += edits[: detail.edits]
        lines += _tell_answer(turn.answers, facts.agent, detail)
        yield "\n".join(lines)


def _set_in(text: str) -> str:
    """Indent all lines but the first, so that quoted text cannot pose as a new turn or speaker."""
    return text.replace("\n", "\n  ")


def _quote(text: str, most: int) -> str:
    return "\n".join(f"> {line}" for line in _cut(text, most).splitlines())


def _list_runs(turn: TurnFacts, detail: _Detail) -> list[str]:
    """List the commands of a turn, failed ones with the line that shows why."""
    found: list[str] = []
    for run in turn.commands:
        if run.exit_code:
            line = cut_words(find_telling_line(run.output), detail.output)
            found.append(f"ran `{cut_words(run.command, 300)}`: exit {run.exit_code}: {line}")
        else:
            found.append(f"ran `{cut_words(run.command, 120)}`")
    return found + [
        f"{error.tool} failed: {cut_words(find_telling_line(error.text), detail.output)}"
        for error in turn.errors
    ]


def _list_edits(turn: TurnFacts) -> list[str]:
    """List the files that a turn changed, each with the first lines it removed and added."""
    found: list[str] = []
    for change in turn.edits:
        found.append(f"{change.action} {change.path}{_count(change.added, change.removed)}")
        found += [f"  - {line}" for line in change.removed_lines[:_EDIT_LINES]]
        found += [f"  + {line}" for line in change.added_lines[:_EDIT_LINES]]
    return found


def _count(added: int | None, removed: int | None) -> str:
    return "" if added is None and removed is None else f" (+{added or 0} -{removed or 0})"


def _tell_answer(answers: list[Message], agent: str, detail: _Detail) -> Iterator[str]:
    """Yield the beginning of a turn's last answer, and all options it lists."""
    if not answers:
        return
    text = answers[-1].text.strip()
    head = text[: detail.answer]
    if head:
        yield f"{agent}: {_set_in(head)}{' […]' if len(head) < len(text) else ''}"
    listed = [line.strip()[:_OPTION_LENGTH] for line in text.splitlines() if _OPTION.match(line)]
    rest = [line for line in listed if line not in head]
    if rest and detail.options:
        yield "listed:\n" + "\n".join(rest[: detail.options])


def _tell_end(facts: Facts, pasted: str, written: str) -> Iterator[str]:
    """Yield the state at the end: documents, plan, running tasks, the waiting prompt, why it stopped.

    `pasted` is what the user pasted with the waiting prompt.
    """
    if written:
        yield f"# The handoff document that {facts.agent} wrote earlier\n{_cut(written, 8000)}"
    if facts.summary:
        yield f"# What {facts.agent} wrote when its context was compacted\n{_cut(facts.summary, 8000)}"
    if facts.plan:
        steps = "\n".join(f"- [{step.status}] {step.text[:300]}" for step in facts.plan[:60])
        yield f"# Its plan\n{steps}"
    if facts.background:
        running = "\n".join(f"- {one[:300]}" for one in facts.background[:20])
        yield f"# Still running\n{running}"
    if facts.unprocessed_prompt:
        yield f"# Not answered yet\nuser: {_set_in(_cut(facts.unprocessed_prompt.text, 4000))}"
    if pasted:
        yield f"{_PASTED}:\n{_quote(pasted, 4000)}"
    if facts.limit_text:
        yield f"# Why it stopped\n{facts.limit_text[:500]}"


def _cut(text: str, limit: int) -> str:
    """Shorten `text` to about `limit` characters by cutting out its middle."""
    text = text.strip()
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail]} […] {text[-tail:]}"


_MARKS = '`"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d'
# A quotation may contain paths and numbers: it is looked up as a whole, and they are not looked up again. It
# cannot contain its own opening mark, so that each text is scanned once.
_QUOTED = (
    r"`[^`\n]+`"
    r"|\"[^\"\n]{2,}\""
    "|[\u201c\u201e][^\u201c\u201d\u201e\n]{2,}[\u201d\u201c]"
    "|\u00ab[^\u00ab\u00bb\n]{2,}\u00bb"
    "|\u300c[^\u300c\u300d\n]+\u300d"
)
_PIECE = re.compile(rf"(?P<quoted>{_QUOTED})|[^\s{_MARKS}]+")
_LIST_MARK = re.compile(r"\s*(?:\d+[.)]|[-*+])\s+")
_SPACES = re.compile(r"\s+")
_ELLIPSIS = re.compile(r"\u2026|\.\.\.")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*")
_ANY_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_POINTS = re.compile("[.,:]")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3})")
_LINE_NUMBER = re.compile(r"(?::\d+){1,2}\Z")
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}\Z")
_PLAIN = str.maketrans({"\u2019": "'", "\u2018": "'", **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"')})
_EDGES = "()[]{}<>*_,;:!?.'\u2019=|"
_LONGEST = 300
_DEEPEST = 12
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.k.a", "n/a", "w/o"})


def mark_unrecorded(document: str, digest: str) -> str:
    """Mark every path, number and quotation of `document` that is not in `digest`.

    White space, quotation marks and case do not matter in a quotation, nor do commas in a number. The parts
    of a quotation with an ellipsis are looked up separately.
    """
    known = _Known(digest)
    return "\n".join(_mark_line(line, known) for line in document.split("\n"))


class _Known:
    """The contents of a digest, prepared for many look-ups."""

    def __init__(self, digest: str) -> None:
        self._text = _flatten(digest)
        self._numbers = {_plain_number(found) for found in _ANY_NUMBER.findall(digest)}
        self._numbers |= {part for number in self._numbers for part in _POINTS.split(number)}
        self._paths = {part for word in self._text.split(" ") for part in _list_parts(word)}

    def has_quotation(self, quoted: str) -> bool:
        """Check whether the digest has the quoted words, whatever an ellipsis stands for."""
        parts = [_flatten(part).strip(" .,;:!?[]") for part in _ELLIPSIS.split(quoted)]
        return all(part in self._text for part in parts if part)

    def has_word(self, word: str) -> bool:
        """Check whether the digest has the path or number `word`; any other word is taken as known."""
        if len(word) > _LONGEST or word.casefold() in _ABBREVIATIONS:
            return True
        if _is_path(word):
            name = _LINE_NUMBER.sub("", word).casefold().removeprefix("./").rstrip("/")
            return not name or name in self._paths
        return all(_plain_number(found) in self._numbers for found in _NUMBER.findall(word))


def _is_path(word: str) -> bool:
    """Check whether a word names a file or folder, by its extension or by slashes unlike those in prose."""
    name = _LINE_NUMBER.sub("", word)
    last = name.rstrip("/").rpartition("/")[2]
    has_ending = _ENDING.search(last) is not None and not last[:1].isdigit()
    return has_ending or name.count("/") > 1 or name.startswith(("/", "~/", "./", "../"))


def _list_parts(word: str) -> Iterator[str]:
    """Yield the paths that a word of the digest implies: itself, its parent folders, its trailing parts."""
    name = _LINE_NUMBER.sub("", word.strip(_EDGES + '`"')).removeprefix("./").rstrip("/")
    if len(name) > _LONGEST or not name:
        return
    yield name
    parts = name.split("/")[:_DEEPEST]
    for begin in range(len(parts)):
        for end in range(begin + 1, len(parts) + 1):
            yield "/".join(parts[begin:end])


def _mark_line(line: str, known: _Known) -> str:
    if line.startswith("#"):
        return line
    if line.startswith(">"):
        return line if known.has_quotation(line.lstrip("> ")) else f"{line} {NOT_RECORDED}"
    begin = _LIST_MARK.match(line)
    place = begin.end() if begin else 0
    parts = [line[:place]]
    for found in _PIECE.finditer(line, place):
        end = found.end()
        if found["quoted"] is not None:
            is_known = known.has_quotation(found[0][1:-1])
        else:
            word = found[0].rstrip(_EDGES)
            end = found.start() + len(word)
            is_known = known.has_word(word.lstrip(_EDGES.replace(".", "")))
        parts += [line[place:end], "" if is_known else f" {NOT_RECORDED}"]
        place = end
    return "".join([*parts, line[place:]])


def _flatten(text: str) -> str:
    return _SPACES.sub(" ", text.translate(_PLAIN)).casefold().strip()


def _plain_number(text: str) -> str:
    """Return the number without the marks that group its digits."""
    return _GROUPED.sub("", text)
