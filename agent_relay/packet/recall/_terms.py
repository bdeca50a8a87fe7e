"""Read a query into weighted terms, and count terms in a text, in any language.

A text is prepared once (lower case, no accents or punctuation), then only the query's terms are counted in
it: no word of a transcript of many megabytes becomes an object. `extract.sentences`, on the other hand, lists
all terms of short texts, unweighted. The words known in several languages are data: all are in lower case
without accents, like the texts searched, and ideographs are listed with their idea.
"""

import unicodedata
from collections.abc import Iterable, Iterator

import msgspec

from agent_relay.domain.text.plain import compile_late

_COMMON_WORDS = """
    a an the of to in on at by for from with without and or not no is was were are be been do does did has
    have had it its this that these those which what who whom whose when where how why i we you they me my
    our your us can could should would will shall may must there then than as if so about into any all
    der die das den dem des ein eine einen einem einer und oder nicht kein keine ist war sind waren wird
    wurde wurden hat haben was wer wen wem welche welchem welchen welcher welches wie wo wann warum wieso
    mit ohne fur von
    zu zum zur im in auf an bei es er sie wir ihr ich uns man auch noch nur dass ob
    el la los las un una unos unas y o no es son era fue fueron de del al en con sin por para que cual
    cuales quien como donde cuando se su sus lo le les mi tu nos hay esta este esto
    le les des du une et ou ne pas est sont etait ete a au aux en avec sans pour par que qui quel quelle
    quels quelles quoi comment pourquoi quand ce cette ces il elle on nous vous je se son sa ses
    o os as um uma e ou nao foi sao era de do da dos das em no na nos nas com sem por para que qual quais
    quem como onde quando se seu sua isto isso esse essa
"""
"""Words of English, German, Spanish, French and Portuguese that are too common to help a search."""

_IDEAS_WORDS = """
cause because root reason why ursache grund weil wegen warum causa motivo razon porque raison parce
    culprit culpable schuld coupable culpado 原因 理由 为什么 なぜ 因为
error errors fail failed failing failure fehler fehlgeschlagen scheitert fallo falla fallido erreur echoue
    erro falha falhou crash exception traceback 错误 失败 エラー 失敗
decision decide decided choose chose chosen pick option entscheidung entschieden nehmen gewahlt decidir
    decidido elegir elegimos opcion choisir choisi decidimos escolher escolhido opcao 决定 选择 決定 選択
reject rejected dropped discard tried abandoned verworfen probiert raus descartado probamos saca abandonne
    essaye rejete descartar tentamos rejeitado worse schlechter peor pire pior
must never always only rule constraint forbidden allowed muss niemals immer nur regel verboten darf nunca
    siempre solo regla prohibido jamais toujours seulement regle interdit sempre somente regra proibido 必须
    禁止 不要 必ず 絶対
next step open todo remaining nachste schritt offen siguiente paso pendiente falta prochaine etape reste
    proximo passo pendente 下一步 待办 次の 残り
goal aim task purpose ziel aufgabe objetivo meta tarea objectif tache tarefa 目标 任务 目標 目的
test tests testing prueba pruebas essai teste testes 测试 テスト
file files datei dateien archivo archivos fichier fichiers arquivo arquivos ficheiro 文件 ファイル
slow fast latency performance langsam schnell lento rapido latencia lent rapide lenteur latence 慢 遅い 性能
deadline until date due frist termin bis fecha plazo echeance delai prazo 截止 期限 締切
version versions fassung versao versiones 版本 バージョン
suspect suspected hypothesis candidate lead false wrong verdacht vermutet sospecha sospechoso soupcon
    soupconne suspeita pista piste spur falsch falso faux irrelevant innocent unrelated
customer client kunde kunden cliente clientes utilisateur usuario 客户 用户 顧客 ユーザー
money price cost amount geld preis kosten betrag dinero precio costo importe argent prix cout montant
    dinheiro preco custo valor 价格 金额 価格 金額
language sprache idioma lengua langue lingua answer antworte responde reponds responda
"""
"""One idea a line, continued on indented lines; by these a question finds answers in another language."""

_PARTS_WORDS = """
failure: error errors failed failure fehler fallo erreur erro 错误 失败 エラー 失敗
plan: step steps todo todos plan schritte pasos plan etapes passos 步骤 计划 手順 計画
first: goal task aim ziel aufgabe objetivo meta tarea objectif tache tarefa 目标 任务 目標 目的
last: last latest newest unanswered letzte letzter letztes zuletzt ultimo ultima dernier derniere 最后 最後
"""
"""Words that name a part of the record itself: its failures, plan, first or last turn."""

_ASKING_WORDS = "ask asked user said prompt prompts nutzer frage usuario pregunta"
"""Words that occur in questions about a conversation but seldom in the conversation."""

_ENDINGS_WORDS = """
    izations isations ization isation ational iciones aciones amente heiten keiten mente ungen acion tions
    ments cion coes sion tion ment heit keit ings cao ung ing ies ied ers ed er en em es os as s e n o a
"""
"""Endings that are cut off to find a stem, longest first."""


MOST_QUERY = 2000
"""The number of characters of a query that are read; nobody asks a longer question."""
_MOST_TERMS = 48

FAILURE_MARK, PLAN_MARK, FIRST_MARK, LAST_MARK = b" #failure ", b" #plan ", b" #first ", b" #last "
"""Marks a caller adds to prepared texts; no word can equal one, since punctuation is removed."""

_IDEA_WEIGHT = 0.35
_COMMON_WEIGHT = 0.05
_NAMING_WEIGHT = 0.4
_SYLLABLE_WEIGHT = 0.2
_MARK_WEIGHT = 1.2
_EXACT_BONUS = 1.6
_LEAST_STEM = 4
_LEAST_INNER = 5
_INFLECTED, _INNER = 0.6, 0.25
_QUOTED = compile_late(r"[\"“”„«»「」『』`]([^\"“”„«»「」『』`\n]{2,120})[\"“”„«»「」『』`]")
_WORD = compile_late(r"[^\W_]+(?:[._/:@#%+\-][^\W_]+)*")
_PART = compile_late(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+")
_IDEOGRAPHS = compile_late("[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
_MARKS = compile_late("[\u0300-\u036f]")

# Sorting combining marks without a letter between them takes time quadratic in their number.
_PIECE = 256
_ASCII = 128
_SPACES = bytes(
    at if at >= _ASCII else ord(chr(at).lower()) if chr(at).isalnum() else ord(" ") for at in range(256)
)
# Punctuation beyond ASCII that may touch words, as UTF-8: inverted marks, angle quotation marks, dashes,
# quotes, arrows, and the punctuation of ideographs; full-width characters are folded first.
_FOREIGN = compile_late(
    rb"\xc2[\xa1\xab\xb7\xbb\xbf]|\xc3\x97|\xe2\x80[\x90-\xbf]|\xe2\x86[\x90-\x93]"
    rb"|\xe3\x80[\x81\x82\x88-\x91]|\xe3\x83\xbb"
)


def _read_ideas() -> tuple[frozenset[str], ...]:
    """Return the words for each idea."""
    lines = _IDEAS_WORDS.strip().replace("\n    ", " ").split("\n")
    return tuple(frozenset(line.split()) for line in lines)


def _read_parts() -> dict[bytes, frozenset[str]]:
    """Return the words that name a part of the record, by its mark."""
    named = (line.partition(": ") for line in _PARTS_WORDS.strip().split("\n"))
    return {b" #%b " % name.encode(): frozenset(names.split()) for name, _, names in named}


_COMMON = frozenset(_COMMON_WORDS.split())
_IDEAS = _read_ideas()
_PARTS = _read_parts()
# These name a part of the record, which seldom contains the word itself.
_NAMING = frozenset(_ASKING_WORDS.split()).union(*_PARTS.values())
_ENDINGS = tuple(_ENDINGS_WORDS.split())


def prepare(text: str) -> bytes:
    """Return `text` prepared for `count`: words in lower case without accents, a space on each side."""
    if text.isascii():
        return b" %b " % text.encode().translate(_SPACES)
    data = _FOREIGN.sub(b" ", fold(text).encode("utf-8", "replace"))
    return b" %b " % data.translate(_SPACES)


def fold(text: str) -> str:
    """Return `text` in lower case, without accents, with full-width characters as plain ones."""
    if text.isascii():
        return text.lower()
    pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
    decomposed = "".join(unicodedata.normalize("NFKD", piece) for piece in pieces)
    return _MARKS.sub("", decomposed.casefold())


class Term(msgspec.Struct, frozen=True):
    """One thing to search for: `forms` are alternatives, each of whole words or ideographs, prepared.

    `stem` also finds inflected words and, if it is long, parts of compounds and identifiers; it is empty for
    terms that match only verbatim. `weight` multiplies the weight that comes from the term's rarity.
    """

    forms: tuple[bytes, ...]
    stem: bytes = b""
    weight: float = 1.0


def count(prepared: bytes, term: Term) -> float:
    """Return how often `term` occurs in a prepared text; inflected and inner occurrences count in part."""
    exact = sum(prepared.count(form) for form in term.forms)
    if not term.stem:
        return float(exact)
    begun = prepared.count(b" " + term.stem)
    found = exact + _INFLECTED * max(0, begun - exact)
    if len(term.stem) >= _LEAST_INNER:
        found += _INNER * max(0, prepared.count(term.stem) - begun)
    return found


def read_query(query: str) -> tuple[Term, ...]:
    """Return the terms of `query`, the most specific first; none if it contains no word."""
    found = {term.forms: term for term in read_words(query)}
    asked = {form.strip() for term in found.values() for form in term.forms}
    for term in _find_ideas(asked):
        found.setdefault(term.forms, term)
    return tuple(found.values())


def read_words(text: str) -> tuple[Term, ...]:
    """Return the terms of `text` itself, without synonyms."""
    text = text[:MOST_QUERY]
    found: dict[tuple[bytes, ...], Term] = {}
    for term in (*_find_phrases(text), *_find_words(text)):
        if len(found) < _MOST_TERMS:
            found.setdefault(term.forms, term)
    return tuple(found.values())


def _find_phrases(text: str) -> Iterator[Term]:
    """Yield each phrase in quotation marks as one term."""
    for match in _QUOTED.finditer(text):
        phrase = b" ".join(prepare(match[1]).split())
        if phrase:
            yield Term((b" %b " % phrase,), weight=2 * _EXACT_BONUS)


def _find_words(text: str) -> Iterator[Term]:
    folded = unicodedata.normalize("NFKC", text)
    for run in _IDEOGRAPHS.findall(folded):
        yield from _find_grams(run)
    for word in _WORD.findall(_IDEOGRAPHS.sub(" ", folded)):
        yield from _find_parts(word)


def _find_grams(run: str) -> Iterator[Term]:
    """Yield the pairs of a run of ideographs, which has no spaces; a single one as itself."""
    pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
    for pair in pairs:
        # Syllables alone are mostly endings; ideographs carry the meaning.
        is_syllabic = all("\u3040" <= sign <= "\u309f" for sign in pair)
        yield Term((fold(pair).encode(),), weight=_SYLLABLE_WEIGHT if is_syllabic else 1.0)


def _find_parts(word: str) -> Iterator[Term]:
    """Yield a word; an identifier or number as a whole, which is the most specific, and in parts."""
    parts = [part for part in _PART.findall(word) if part]
    whole = b" ".join(prepare(word).split())
    is_number = any(sign.isdigit() for sign in word)
    if len(parts) > 1 or is_number:
        yield Term((b" %b " % whole,), weight=_EXACT_BONUS)
    for part in parts if len(parts) > 1 else [word]:
        plain = prepare(part).strip()
        if not plain or (len(parts) > 1 and len(plain) < 2):  # noqa: PLR2004 - one letter of an identifier
            continue
        name = plain.decode()
        if name in _COMMON:
            yield Term((b" %b " % plain,), weight=_COMMON_WEIGHT)
        elif name.isalpha():
            weight = _NAMING_WEIGHT if name in _NAMING else 1.0
            yield Term((b" %b " % plain,), stem=_cut_ending(name).encode(), weight=weight)
        elif plain != whole:
            yield Term((b" %b " % plain,), weight=0.7)


def _cut_ending(word: str) -> str:
    """Return the stem of `word`; empty if that would be too short to be useful."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            return word[: -len(ending)]
    return word if len(word) >= _LEAST_STEM else ""


def _find_ideas(asked: Iterable[bytes]) -> Iterator[Term]:
    """Yield the ideas that the query names, each with its other words, and the named parts of the record."""
    given = {word.decode("utf-8", "replace") for word in asked}
    for idea in _IDEAS:
        if not given.isdisjoint(idea):
            yield Term(tuple(_build_form(word) for word in sorted(idea - given)), weight=_IDEA_WEIGHT)
    for mark, names in _PARTS.items():
        if not given.isdisjoint(names):
            yield Term((mark,), weight=_MARK_WEIGHT)


def _build_form(word: str) -> bytes:
    """Return a word of the data as it appears in a prepared text; ideographs have no spaces around them."""
    folded = fold(word).encode()
    return folded if _IDEOGRAPHS.match(word) else b" %b " % folded
