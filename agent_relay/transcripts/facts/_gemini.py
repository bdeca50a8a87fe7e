"""Read facts from Gemini CLI's files: records replaced by id, rewritten and rewound (measured on 0.61.0)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from agent_relay.domain.facts import Facts
from agent_relay.transcripts._gemini_format import SYSTEM_PROMPT, parse_tokens
from agent_relay.transcripts.facts._fact_collector import Collector
from agent_relay.transcripts.facts._gemini_tools import hear_tool
from agent_relay.transcripts.facts.reader_types import Peek, TranscriptSource
from agent_relay.transcripts.lenient_json import (
    LineCounter,
    get_list,
    get_map,
    get_text,
    has_words,
    iterate_records,
    parse_moment,
)
from agent_relay.transcripts.message_text import compile_wrappers, strip_wrappers

_WRAPPERS = compile_wrappers("session_context", "hook_context", "system-reminder")
_FOLDERS = "**Workspace Directories:**"
_PEEK_LINES = 20
_KNOWN = ("user", "gemini", "info", "error", "warning")

_records = msgspec.json.Decoder(dict[str, object])


@dataclass(slots=True)
class _Log:
    """The replayed file: messages in order by id, with the line each was last written on."""

    header: Mapping[str, object] = field(default_factory=dict)
    messages: dict[str, tuple[int, Mapping[str, object]]] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    summary: str = ""
    context: str = ""

    def put(self, number: int, message: Mapping[str, object]) -> None:
        """Add a message, or replace the one with the same id in its place."""
        text = _join(message)
        if get_text(message, "type") == "user":
            self.context = self.context or (text if _FOLDERS in text else "")
            self.texts.add(text)
        self.messages[get_text(message, "id")] = (number, message)

    def rewrite(self, number: int, messages: list[object]) -> None:
        """Apply a rewritten list of messages.

        Compression drops messages from the list; they are kept here, as history, and what is new in the list
        is the summary. A resumed session repeats old messages under new ids.
        """
        is_first = not any(_words(one) for _, one in self.messages.values())
        for message in messages:
            known = get_text(message, "id") in self.messages or _join(message) in self.texts
            if isinstance(message, Mapping) and is_first:
                self.put(number, message)
            elif not known and _words(message):
                self.summary = _words(message)
                self.texts.add(_join(message))

    def rewind(self, target: str) -> None:
        """Drop the message `target` and all after it."""
        found = list(self.messages)
        if target in self.messages:
            for key in found[found.index(target) :]:
                del self.messages[key]


def read_gemini(source: TranscriptSource) -> Facts:
    """Read the facts of one session file, or of the prompt log alone if the CLI deleted the file."""
    counter = LineCounter()
    log = _replay(source.lines, counter)
    facts = Collector(agent="gemini", place=source.place)
    facts.see(parse_moment(log.header.get("startTime")))
    model = ""
    for number, message in log.messages.values():
        facts.see(parse_moment(message.get("timestamp")))
        model = get_text(message, "model") or model
        _hear(facts, message, f"{source.place}:{number}")
    native_id = get_text(log.header, "sessionId") or source.native_id
    if not facts.conversation:
        _hear_prompts(facts, source, native_id)
    facts.summary = log.summary
    return facts.build(
        native_id=native_id,
        cwd=source.cwd or _find_folder(log.context),
        model=model,
        counter=counter,
    )


def peek_gemini(lines: Iterable[bytes]) -> Peek:
    """Read session id, working folder and first prompt from the first lines."""
    log = _replay(islice(lines, _PEEK_LINES), LineCounter())
    words = (_words(message) for _, message in log.messages.values())
    return Peek(
        native_id=get_text(log.header, "sessionId"),
        cwd=_find_folder(log.context),
        title=next((text for text in words if text), ""),
        started_at=parse_moment(log.header.get("startTime")),
        is_main=get_text(log.header, "kind") in ("main", "") and bool(log.header),
    )


def _replay(lines: Iterable[bytes], counter: LineCounter) -> _Log:
    log = _Log()
    for number, record in iterate_records(lines, _records, counter):
        change = get_map(record, "$set")
        if isinstance(change.get("messages"), list):
            log.rewrite(number, get_list(change, "messages"))
        elif "$rewindTo" in record:
            log.rewind(get_text(record, "$rewindTo"))
        elif get_text(record, "id") and get_text(record, "type"):
            log.put(number, record)
            if get_text(record, "type") not in _KNOWN and has_words(record):
                counter.skip(counter.last[-1])
        elif get_text(record, "sessionId") and not has_words(record):
            log.header = log.header or record
        elif not change:
            counter.skip(counter.last[-1])
    return log


def _join(message: object) -> str:
    """Return the text of a message: a string, or parts that hold `text`."""
    content = get_map(message).get("displayContent") or get_map(message).get("content")
    if isinstance(content, str):
        return content
    texts = [get_text(part, "text") for part in content] if isinstance(content, list) else []
    return "\n".join(text for text in texts if text)


def _words(message: object) -> str:
    """Return the user's words in a message, empty if it holds none."""
    if get_text(message, "type") != "user":
        return ""
    text = strip_wrappers(_join(message), _WRAPPERS)
    return "" if text.startswith(SYSTEM_PROMPT) else text


def _hear(facts: Collector, message: Mapping[str, object], place: str) -> None:
    match get_text(message, "type"):
        case "user":
            words = _words(message)
            if words:
                facts.hear_user(words, place)
        case "gemini":
            _hear_answer(facts, message, place)
        case "error":
            facts.limit_text = _join(message).strip()
            facts.answered = False
        case "info" if _join(message).startswith("Request cancelled"):
            facts.answered = False
            facts.interrupted = True
        case _:
            pass


def _hear_answer(facts: Collector, message: Mapping[str, object], place: str) -> None:
    tokens = get_map(message, "tokens")
    if tokens:
        facts.tokens[get_text(message, "id")] = parse_tokens(tokens)
    text = _join(message).strip()
    if text:
        facts.hear_agent(text, place)
        facts.answered = True
    for call in get_list(message, "toolCalls"):
        facts.answered = False
        hear_tool(facts, call, place)


def _hear_prompts(facts: Collector, source: TranscriptSource, native_id: str) -> None:
    """Add the prompts from the log of prompts.

    The CLI deletes a session whose only prompt got no answer when it quits; the log keeps the words.
    """
    for entry in source.prompts:
        text = get_text(entry, "message").strip()
        is_own = get_text(entry, "sessionId") == native_id
        if is_own and get_text(entry, "type") == "user" and text and not text.startswith("/"):
            facts.see(parse_moment(entry.get("timestamp")))
            facts.hear_user(text, source.place)


def _find_folder(context: str) -> str:
    """Return the first folder listed in the context the CLI gives its model."""
    _, found, rest = context.partition(_FOLDERS)
    lines = rest.lstrip("\n").split("\n", 1)
    return lines[0].strip().removeprefix("- ").strip() if found else ""
