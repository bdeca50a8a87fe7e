"""Find what the user wants, in their own words: requests, rules and corrections.

What relay typed and what earlier legs said is removed first.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from agent_relay.domain.facts import Facts, Message
from agent_relay.domain.values import replace
from agent_relay.packet.extract.pastes.split import split_pasted
from agent_relay.packet.extract.sentences import get_phrases, is_alike, plain_apostrophes, split_sentences

_CONTEXT = re.compile(r"<handoff-context\b.*?(?:</handoff-context>|\Z)", re.DOTALL)
_LETTER = re.compile(r"\w")
_PLACEHOLDER = re.compile(r"\{[a-z_]+\}")
# What an agent adds around a file named in a prompt.
_INLINED = re.compile(
    r"^-{2,} (?:Content from referenced files|End of content) -{2,}$|^Content from @.*:$", re.MULTILINE
)
USER_SAID = "the user said:"


class Quotation(msgspec.Struct, frozen=True):
    """One quoted sentence or message, and the message it is from."""

    text: str
    said: Message


class Pastes(msgspec.Struct, frozen=True):
    """Text by others that the user pasted: by turn, and with the unanswered prompt."""

    turns: Mapping[int, str]
    waiting: str = ""


def strip_relay(facts: Facts, relay_texts: Iterable[str]) -> tuple[Facts, bool]:
    """Remove what relay typed; also return whether relay's own prompt is still unanswered.

    In the transcript, a delivered packet and the opening typed after it look like the user's words. Words
    that a person added to them stay. `relay_texts` may hold `{placeholders}`.
    """
    patterns = [_compile_text(text) for text in relay_texts if text.strip()]
    conversation: list[Message] = []
    for said in facts.conversation:
        text = _strip(said.text, patterns) if said.role == "user" else said.text
        if text:
            conversation.append(said if text == said.text else replace(said, text=text))
    prompt = facts.unprocessed_prompt
    waits = False
    if prompt is not None:
        text = _strip(prompt.text, patterns)
        waits = text != prompt.text
        prompt = replace(prompt, text=text) if text else None
    return replace(facts, conversation=tuple(conversation), unprocessed_prompt=prompt), waits


def set_pastes_apart(facts: Facts) -> tuple[Facts, Pastes]:
    """Return the facts with only the user's own words in prompts, and separately what was pasted."""
    turns: dict[int, str] = {}
    conversation: list[Message] = []
    for said in facts.conversation:
        own, pasted = _split(said) if said.role == "user" else (said, "")
        if pasted:
            turns[said.turn] = pasted
        conversation.append(own)
    waiting, pasted = facts.unprocessed_prompt, ""
    if waiting is not None:
        waiting, pasted = _split(waiting)
    own_facts = replace(facts, conversation=tuple(conversation), unprocessed_prompt=waiting)
    return own_facts, Pastes(turns, pasted)


def _split(said: Message) -> tuple[Message, str]:
    split = split_pasted(said.text)
    pasted = "\n".join(split.pasted)
    return (replace(said, text=split.own), pasted) if pasted else (said, "")


def strip_packets(text: str) -> str:
    """Remove the packets from the text."""
    return _CONTEXT.sub("", text).strip()


def empty_packets(text: str) -> str:
    """Return the text with the packets in it emptied: that they were there still shows."""
    return _CONTEXT.sub("<handoff-context></handoff-context>", text)


def _compile_text(text: str) -> re.Pattern[str]:
    parts = [re.escape(part) for part in _PLACEHOLDER.split(" ".join(text.split()))]
    return re.compile(r"\S+".join(parts).replace(r"\ ", r"\s+"))


def _strip(text: str, patterns: Sequence[re.Pattern[str]]) -> str:
    rest = _CONTEXT.sub("", text)
    for pattern in patterns:
        rest = pattern.sub("", rest)
    if len(rest) == len(text):
        return text
    rest = _INLINED.sub("", rest)
    return rest.strip() if _LETTER.search(rest) else ""


def select_since(facts: Facts, since: datetime | None) -> Facts:
    """Keep only the facts from `since` on, and those without a time.

    The transcript of a resumed session repeats earlier legs.
    """
    if since is None:
        return facts
    return replace(
        facts,
        conversation=tuple(one for one in facts.conversation if one.at is None or one.at >= since),
        commands=tuple(one for one in facts.commands if one.at is None or one.at >= since),
        files=tuple(one for one in facts.files if one.at is None or one.at >= since),
        errors=tuple(one for one in facts.errors if one.at is None or one.at >= since),
    )


_CONSENT = get_phrases("consent")
_ASKS = get_phrases("asks")
_QUESTION_END = get_phrases("question-end")
_RETRACTION = get_phrases("retraction")
_RULE = get_phrases("rule")
_QUOTES = get_phrases("quotes-somebody")
_STANDING = get_phrases("standing-rule")
_CORRECTION = get_phrases("correction")
_MILD = get_phrases("mild-correction")
_POLITE = get_phrases("polite-request")
_STATEMENT = get_phrases("statement")
_APPROVAL = get_phrases("approval")
_CONTRAST = get_phrases("contrast")
_CLAUSE_BREAK = get_phrases("clause-break")
_SEPARATORS = re.compile(r"[.,;:!?…\n]\s*|\band ")
_CORRECTION_LENGTH = 300
# The most words of a question without a question mark.
_LONGEST_QUESTION = 14
# The fewest words of a message that describes the work although it ends with a question.
_ORDER = 12
_SHORT_ORDER = 6
# The most characters of a message that is mere consent.
_LEAVE = 120
# A short message with a redacted secret says little else.
_REMOVED = "[redacted"
_WORDS = 4
_PRAISE = 8
# A passing wish may be repeated later: the newest is kept, searched for among this many.
_NEAR = 12
_HOLDS = 2


def find_request(facts: Facts) -> Message | None:
    """Find the user's message that says what the work is: the first one that orders something.

    Consent, greetings and questions nobody worked on do not count, nor does an order that was taken back
    before anything was done. If nothing was ordered, the first message is returned, whatever it says.
    """
    users = [said for said in facts.conversation if said.role == "user" and said.text.strip()]
    worked = {change.turn for change in facts.files if change.action != "read"} | {
        run.turn for run in facts.commands if run.exit_code
    }
    orders = [said for said in users if not is_consent(said.text)]
    firm = [
        said
        for said in orders
        if said.turn in worked or len(said.text.split()) >= _ORDER or not is_asking(said.text)
    ]
    found = next(iter((*firm, *orders, *users)), None)
    if found is None:
        return None
    if orders and len(found.text.split()) < _SHORT_ORDER:
        found = orders[0]  # "yes, fix it" needs the question before it
    for later in orders:
        if later.turn > found.turn and any(found.turn <= turn < later.turn for turn in worked):
            break
        if later.turn > found.turn and _RETRACTION.search(plain_apostrophes(later.text)):
            found = later
    return found


def is_consent(text: str) -> bool:
    """Check whether the message is mere consent, in one clause or several."""
    plain = plain_apostrophes(text.strip())
    if _CONSENT.fullmatch(plain):
        return True
    clauses = [clause for clause in _SEPARATORS.split(plain) if clause] if len(plain) <= _LEAVE else []
    return bool(clauses) and all(map(_CONSENT.fullmatch, clauses))


def is_asking(text: str) -> bool:
    """Check whether the message only asks something; a short question may lack its question mark."""
    plain = plain_apostrophes(text.strip())
    if _QUESTION_END.search(plain):
        return True
    return len(plain.split()) <= _LONGEST_QUESTION and bool(_ASKS.match(plain))


def is_rule(sentence: str) -> bool:
    """Check whether a sentence of the user's is a rule or a correction, not a question or a quoted rule."""
    plain = _QUOTES.sub(" ", plain_apostrophes(sentence))
    if (is_asking(plain) and not _POLITE.match(plain)) or is_consent(plain):
        return False
    return bool(_RULE.search(plain) or _STANDING.search(plain) or _CORRECTION.match(plain))


def weigh_rule(text: str) -> int:
    """Return from 0 to 2 how much one of the user's rules would be missed.

    Rules that hold throughout and contradictions weigh 2.
    """
    plain = plain_apostrophes(text)
    if _STANDING.search(plain) or (_CORRECTION.match(plain) and not _MILD.match(plain)):
        return 2
    if _is_statement(plain):
        return 2 if _CONTRAST.search(plain) else 1
    return 1 if is_explained(plain) else 0


def find_constraints(facts: Facts, lifting: Collection[tuple[int, str]] = ()) -> list[Quotation]:
    """Find the user's rules and corrections, verbatim; a short correction is quoted whole.

    `lifting` are sentences, with their turns, that only take a rule back: they are none themselves.
    """
    found: list[Quotation] = []
    for said in facts.conversation:
        if said.role != "user" or is_consent(said.text):
            continue
        sentences = split_sentences(said.text.strip())
        left = [sentence for sentence in sentences if (said.turn, sentence) not in lifting]
        if len(left) == len(sentences) and _is_kept_whole(said):
            found.append(Quotation(" ".join(said.text.split()), said))
        else:
            found.extend(Quotation(sentence, said) for sentence in left if is_rule(sentence))
    for error in facts.errors:
        _, told, words = error.text.partition(USER_SAID)
        if told and words.strip():
            said = Message("user", words.strip(), error.turn, error.at, error.place)
            found.append(Quotation(words.strip(), said))
    return _leave_repeated(found)


def _leave_repeated(found: list[Quotation]) -> list[Quotation]:
    """Drop each rule with a weight below 2 that another one soon repeats."""
    kept: list[Quotation] = []
    passing: list[Quotation] = []
    for spoken in reversed(found):
        if weigh_rule(spoken.text) < _HOLDS:
            if any(is_alike(spoken.text, other.text) for other in passing[-_NEAR:]):
                continue
            passing.append(spoken)
        kept.append(spoken)
    return kept[::-1]


def _is_kept_whole(said: Message) -> bool:
    """Check whether a message is short, not the first one, and corrects or states something."""
    text = said.text.strip()
    is_short = said.turn > 1 and len(text) <= _CORRECTION_LENGTH and _REMOVED not in text
    return is_short and not is_asking(text) and _is_correction(text)


def _is_correction(text: str) -> bool:
    """Check whether the user contradicts or states something, questions aside."""
    plain = plain_apostrophes(text)
    if not plain.endswith("?") and (_CORRECTION.match(plain) or _is_statement(plain)):
        return True
    told = [sentence for sentence in split_sentences(text) if not sentence.endswith("?")]
    return any(_is_telling(plain_apostrophes(sentence)) for sentence in told)


def _is_telling(plain: str) -> bool:
    return bool(_CORRECTION.match(plain)) or _is_statement(plain) or is_explained(plain)


def is_explained(plain: str) -> bool:
    """Check whether a request comes with a reason, limit or alternative: it has more than one clause."""
    if plain.endswith("?"):
        return False
    clauses = [clause for clause in _CLAUSE_BREAK.split(plain) if clause and not _is_praise(clause)]
    return len(clauses) > 1 and sum(len(clause.split()) for clause in clauses) >= _WORDS


def _is_praise(plain: str) -> bool:
    """Check whether the user only consents or approves."""
    if is_consent(plain):
        return True
    return bool(_APPROVAL.search(plain)) and len(plain.split()) <= _PRAISE


def _is_statement(plain: str) -> bool:
    """Check whether the user states something other than approval."""
    return bool(_STATEMENT.match(plain)) and not _is_praise(plain)
