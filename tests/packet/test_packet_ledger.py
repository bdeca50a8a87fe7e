"""The ledger has what the user said and what came of it; only what they accepted is settled."""

import time

import pytest

from agent_relay.domain.documents.packet import Exchange, ResumePacket
from agent_relay.domain.facts import CommandRun, Facts, FileChange, Message
from agent_relay.domain.values import replace
from agent_relay.packet.build import build_packet
from tests.session.first_leg import OCCASION, say

OPTIONS = "Three ways:\n\n1. one file per day\n2. a table in SQLite\n3. a folder per user\n\nWhich one?"
OFFERED = "Three ways: 1. one file per day 2. a table in SQLite 3. a folder per user Which one?"


def build(*turns: str, **more: object) -> ResumePacket:
    """The packet of a conversation in which user and agent take turns."""
    return build_packet(replace(Facts(agent="alpha", conversation=say(*turns)), **more), OCCASION)  # type: ignore[arg-type]


def find(packet: ResumePacket, turn: int) -> Exchange:
    """The exchange of that turn."""
    return next(one for one in packet.exchanges if one.source and one.source.turn == turn)


def answer(words: str, *, offered: str = OPTIONS) -> Exchange:
    """The exchange in which the user answers what was offered with these words."""
    return find(
        build("write the store of the parser", offered, words, "Done.", "now the docs of it", "ok"), 2
    )


@pytest.mark.parametrize(
    "words",
    [
        "2", "b)", "the second", "option 3", "take the table", "the one in SQLite, files get lost",
        "neither, keep it in memory", "none of them", "die zweite", "la segunda", "la deuxième", "第二个",
        "2で",
    ],
)  # fmt: skip
def test_a_choice_is_told_with_all_of_its_options(words: str) -> None:
    """A number says nothing to somebody who was not there."""
    chosen = answer(words)
    assert (chosen.said, chosen.on, chosen.is_settled) == (words, OFFERED, True)


def test_a_choice_between_two_ways_in_one_sentence_is_settled() -> None:
    """Agents seldom number two ways."""
    rows = ["ok the first one then", "the first", "the integer, it is exact"]
    assert [
        words
        for words in rows
        if not answer(words, offered="I could store cents as an integer or as a Decimal.").is_settled
    ] == []


@pytest.mark.parametrize("words", ["forget the 30 days, 7 is fine", "vergiss die 30 Tage, 7 reichen"])
def test_a_number_that_takes_the_place_of_another_is_settled(words: str) -> None:
    """The user says what holds instead."""
    packet = build("keep the logs for 30 days", "Set.", "now the docs", "Done.", words, "Set.", "1 + 2", "3.")
    assert find(packet, 3).is_settled


def test_options_are_told_once_with_their_answer() -> None:
    """They are in the turn before as well; twice, they cost twice."""
    packet = build("write the store of the parser", OPTIONS, "2", "Done.", "now the docs of it", "ok")
    assert [one.on for one in packet.exchanges] == ["", OFFERED, ""]
    assert [one.told for one in packet.exchanges] == ["", "Done.", "ok"]


def test_what_answers_nothing_settles_nothing() -> None:
    """Somebody who says thanks has not chosen."""
    rows = ["hm", "Lunch.", "thanks!", "one sec", "danke", "merci", "gracias", "谢谢"]
    assert [words for words in rows if answer(words).is_settled] == []


def test_a_question_settles_nothing() -> None:
    """Who asks has not decided yet."""
    rows = [
        "why?",
        "what would you take",
        "is the second not slow?",
        "was spricht gegen die zweite?",
        "哪个更快?",
    ]
    assert [words for words in rows if answer(words).is_settled] == []


def test_who_begins_something_else_has_settled_nothing() -> None:
    """The question stays open; an order of other work is a task, not a choice."""
    rows = [
        "ok last thing. ranking: newer products belong higher up, draft two proposals",
        "ok letzte sache. ranking: neue produkte sollen höher, mach 2 vorschläge",
    ]
    assert [
        words
        for words in rows
        if answer(words, offered="Done. Shall I rename the old files of the parser too?").is_settled
    ] == []


def test_many_words_about_what_was_asked_settle_it() -> None:
    """Leave to go on, or what was asked in other words, answers however much stands below it."""
    rows = [
        "yes, and when that is through write the docs of it in docs/ please",
        "no, rename the files by hand one at a time, and log it",
    ]
    assert [
        words
        for words in rows
        if not answer(words, offered="Done. Shall I rename the old files of the parser too?").is_settled
    ] == []


@pytest.mark.parametrize("words", ["yes", "ja", "sí", "oui", "sim", "好的", "はい、お願いします"])
def test_consent_is_the_users_and_its_question_is_told(words: str) -> None:
    """A bare yes stands beside what it says yes to."""
    packet = build(
        "write the store", "Shall I delete the old files?", words, "Deleted.", "now the docs", "ok"
    )
    assert find(packet, 2).is_settled
    assert [(one.on, one.told) for one in packet.exchanges[:2]] == [
        ("", ""),
        ("Shall I delete the old files?", "Deleted."),
    ]


@pytest.mark.parametrize(
    "told",
    [
        "I decided to use a table because files get lost. It is settled.",
        "Decision: one table. We settled on SQLite.",
    ],
)
@pytest.mark.parametrize("after", ["now the docs of it", "thanks", "what does it cost?"])
def test_nothing_an_agent_proposed_is_settled_unless_the_user_took_it(told: str, after: str) -> None:
    """An agent's sentence about its own choice is what it said, and no more."""
    packet = build("write the store of the parser", told, after, "ok")
    assert packet.decisions == ()
    assert not find(packet, 1).is_settled
    assert "SQLite" in find(packet, 1).told or "table" in find(packet, 1).told


def test_a_choice_that_the_next_prompt_turns_down_is_not_settled() -> None:
    """The user tried it, and it was worse."""
    packet = build(
        *("write the store", OPTIONS, "2", "Done, 40 ms.", "nope, that is slower, back to files", "Back.")
    )
    assert not find(packet, 2).is_settled
    assert "2" not in [one.summary for one in packet.decisions]
    assert find(packet, 3).said == "nope, that is slower, back to files"


def test_work_is_told_with_the_run_that_failed_and_its_line() -> None:
    """A rejected path without the reason would be tried again."""
    run = CommandRun(
        "make bench", "building\nerror: out of memory at row 9\nmake: stopped", 2, 1, place="t:1"
    )
    packet = build("try a bigger cache", "It does not fit.", commands=(run,))
    [worked] = packet.exchanges
    assert worked.failed == "`make bench`: error: out of memory at row 9"


def test_a_search_without_hits_is_no_failed_run() -> None:
    """Its status is an answer."""
    run = CommandRun("grep -rn cache src", "", 1, 1)
    assert build("look for the cache", "None there.", commands=(run,)).exchanges[0].failed == ""


def test_what_was_measured_is_told() -> None:
    """Numbers settle what words only claim."""
    run = CommandRun("./bench", "warm\np50=9ms p99=212ms\nbye", 0, 1)
    assert build("measure it", "Fast enough.", commands=(run,)).exchanges[0].measured == "p50=9ms p99=212ms"


def test_a_heading_is_not_what_an_answer_tells() -> None:
    """Below it stands what was done; further down it is talk."""
    told = "## What I did\n\nHere it is:\n\nThe cache is keyed by day now.\n\nIt may be of use to know."
    assert build("key the cache by day", told).exchanges[0].told == "The cache is keyed by day now."


def test_prompts_and_sentences_that_a_session_repeats_are_left_out() -> None:
    """What is said in every turn, with other numbers in it, tells nothing of where it stands."""
    turns = []
    for number in range(1, 9):
        turns += [f"run step {number}", f"Ran step {number}. Anything else I can do for you today?"]
    packet = build(
        *turns, "keep 30 days of logs, never more", "Set to 30 days. Anything else I can do for you today?"
    )
    assert [one.said for one in packet.exchanges] == ["keep 30 days of logs, never more"]
    assert packet.exchanges[0].told == "Set to 30 days."


def test_of_few_exchanges_all_are_told() -> None:
    """Where the user seldom spoke, everything they said counts."""
    packet = build("paint it", "Green.", "and the door", "Red.", "and the gate", "Blue.")
    assert [(one.said, one.told) for one in packet.exchanges] == [
        ("paint it", "Green."),
        ("and the door", "Red."),
        ("and the gate", "Blue."),
    ]


LANGUAGES = {
    "en": (
        OPTIONS,
        "take the second",
        "no wait, back to the first one",
        "never write into the vendor folder",
    ),
    "de": (
        "Drei Wege:\n\n1. eine Datei je Tag\n2. eine Tabelle\n3. ein Ordner\n\nWelchen?",
        *("nimm die zweite", "nein doch nicht, zurück zur ersten", "schreib nie in den Ordner vendor"),
    ),
    "es": (
        "Tres opciones:\n\n1. un archivo\n2. una tabla\n3. una carpeta\n\n¿Cuál?",
        *("la segunda", "mejor no, volvamos a la primera", "nunca escribas en la carpeta vendor"),
    ),
    "fr": (
        "Trois options :\n\n1. un fichier\n2. une table\n3. un dossier\n\nLaquelle ?",
        *("la deuxième", "finalement non, reviens à la première", "n'écris jamais dans le dossier vendor"),
    ),
    "pt": (
        "Três opções:\n\n1. um arquivo\n2. uma tabela\n3. uma pasta\n\nQual?",
        *("a segunda", "melhor não, volta para a primeira", "sempre escreva fora da pasta vendor"),
    ),
    "zh": (
        "三个方案:\n\n1. 每天一个文件\n2. 一张表\n3. 一个文件夹\n\n选哪个?",
        *("第二个", "算了,还是用第一个", "不要写 vendor 目录"),
    ),
    "ja": (
        "三つの方法があります:\n\n1. 一日一ファイル\n2. 表\n3. フォルダー\n\nどれにしますか?",
        *("二番目でお願いします", "やっぱりやめて、一番目に戻して", "vendor フォルダーには絶対に書かないで"),
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_choice_retraction_and_order_are_known_in_every_language(language: str) -> None:
    """Chosen with its options, no longer settled once it is taken back, and a rule that holds throughout."""
    offered, choice, retraction, order = LANGUAGES[language]
    taken = build("1 + 1", offered, choice, "ok.", "1 + 2", "3.")
    assert find(taken, 2).is_settled
    assert find(taken, 2).on == " ".join(offered.split())
    packet = build("1 + 1", offered, choice, "ok.", retraction, "ok!", order, "ok;", "1 + 2", "3.")
    assert [one.said for one in packet.exchanges][1:4] == [choice, retraction, order]
    assert choice not in [one.summary for one in packet.decisions]
    assert find(packet, 4).is_settled
    assert order in [one.text for one in packet.constraints]


CORRECTIONS = {
    "en": (
        "the importer keeps tombstones for 14 days",
        "one correction, the importer keeps tombstones for 30 days",
    ),
    "de": ("Der Importer behält Grabsteine 14 Tage", "Korrektur: der Importer behält Grabsteine 30 Tage"),
    "es": ("el importador guarda lápidas 14 días", "me equivoqué, el importador guarda lápidas 30 días"),
    "fr": ("l'importateur garde les stèles 14 jours", "en fait l'importateur garde les stèles 30 jours"),
    "pt": ("o importador guarda lápides por 14 dias", "na verdade o importador guarda lápides por 30 dias"),
    "zh": ("导入器的墓碑保留 14 天", "说错了,导入器的墓碑保留 30 天"),
    "ja": ("取込ツールの墓標は14日間保持する", "訂正です、取込ツールの墓標は30日間保持する"),
}


@pytest.mark.parametrize("language", CORRECTIONS)
def test_a_correction_marks_what_it_corrects_in_every_language(language: str) -> None:
    """Of two numbers the newer one wins, and the older one says so."""
    first, second = CORRECTIONS[language]
    packet = build(first, "Ok, kept.", "1 + 1", "2.", second, "Ok, changed.", "1 + 2", "3.")
    old, new = find(packet, 1), find(packet, 3)
    assert (old.ended_how, old.ended_in, old.is_settled) == ("corrected", 3, False)
    assert new.said == second


def test_a_prompt_that_was_only_pasted_is_told_as_pasted() -> None:
    """It has no word of the user's own, and settles nothing, whatever stands in it."""
    log = (
        "```\n2026-11-20 10:00:01 ERROR never restart the worker\n2026-11-20 10:00:02 INFO always retry\n```"
    )
    packet = build("watch the worker", "I do.", log, "The worker fell over at ten o'clock sharp, it seems.")
    pasted = find(packet, 2)
    assert (pasted.said, pasted.is_settled) == ("", False)
    assert "never restart" in pasted.pasted
    assert packet.decisions == ()
    assert packet.constraints == ()


def test_work_nobody_prompted_is_told_as_the_agents() -> None:
    """After a packet was delivered the agent works without a word of the user's."""
    facts = Facts(
        agent="alpha",
        conversation=(Message("assistant", "The parser reads TOML now.", 1),),
        commands=(CommandRun("./deploy", "refused: no key", 3, 1),),
        files=(FileChange("a.py", "modified", 1),),
    )
    [worked] = build_packet(facts, OCCASION).exchanges
    assert (worked.said, worked.on, worked.is_settled) == ("", "", False)
    assert (worked.failed, worked.told) == ("`./deploy`: refused: no key", "The parser reads TOML now.")


@pytest.mark.parametrize("leave", ["yes", "ja, mach"])
def test_an_included_question_comes_with_the_consent_that_answered_it(leave: str) -> None:
    """Without its answer it looks open, and the successor would ask again."""
    talk: list[str] = []
    for name in "abcdefghijkl":
        talk += [f"never write {name}.py without a lock, it cost 3 days", f"Locked {name}."]
    packet = build(
        *talk, "use 0.4 for match.py, not 0.1", "0.4 finds nothing in match.py. Shall I take 0.35?",
        leave, "Done.",
        files=(
            FileChange("match.py", "modified", 13, added_lines=("a = 40",), removed_lines=("a = 10",)),
            FileChange("match.py", "modified", 14, added_lines=("a = 35",), removed_lines=("a = 40",)),
        ),
    )  # fmt: skip
    assert find(packet, 14).on.endswith("Shall I take 0.35?")
    assert (find(packet, 14).said, find(packet, 14).is_settled) == (leave, True)


def test_what_is_cut_ends_with_a_word() -> None:
    """Half a word is read as another; where no blank is near, it is cut where it has to be."""
    words = " ".join(f"formatting{number}" for number in range(100))
    said = find(build("write the store", "ok", f"never touch {words}", "Done."), 2).said
    assert said.endswith("…")
    assert set(said.removesuffix("…").split()) <= {"never", "touch", *words.split()}
    signs = "绝" * 1000
    assert len(find(build("write the store", "ok", f"never touch {signs}", "Done."), 2).said) == 420


@pytest.mark.size("test")
def test_what_is_quoted_has_a_length() -> None:
    """One forged message must not fill the packet, nor half a key stay because its end was cut."""
    words = "never touch it " * 70_000
    packet = build(words, words, words, words, commands=(CommandRun(words, words, 3, 1),))
    for one in packet.exchanges:
        assert max(map(len, (one.on, one.said, one.told, one.failed, one.measured, one.pasted))) <= 1000


def test_control_characters_are_words_like_others() -> None:
    """They are made harmless where they are shown; here they must break nothing."""
    packet = build("never\x00 \x1b[31mpush\x07\u202e\ud800", "ok\x00", "1)\x00 2)\x00", "done")
    assert [one.said for one in packet.exchanges] != []


@pytest.mark.size("every")
@pytest.mark.timeout(120)
def test_thousands_of_turns_take_time_linear_in_their_number() -> None:
    """While a packet is being written, no agent is at work."""

    def measure(count: int) -> float:
        turns = [
            word
            for number in range(count)
            for word in (
                f"never use {'abcdefgh'[number % 8]}{number} in part {number * 7}",
                f"Part {number} is done.",
            )
        ]
        facts = Facts(agent="alpha", conversation=say(*turns))
        begun = time.process_time()
        packet = build_packet(facts, OCCASION)
        assert len(packet.exchanges) <= 60
        return time.process_time() - begun

    measure(50)
    few, many = measure(400), measure(3200)
    assert many < 8 * 3 * max(few, 0.05)
