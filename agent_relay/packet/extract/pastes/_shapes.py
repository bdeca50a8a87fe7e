"""Recognise the lines of a prompt that are no prose of the user's, by their shape and by their wording.

Shapes are those of logs, traces, diffs, terminals, tables and code. By its wording a line introduces a paste,
is the user's own, or is a stranger's order.
"""

from collections.abc import Sequence

from agent_relay.domain.text.plain import compile_late
from agent_relay.packet.extract.sentences import get_phrases, plain_apostrophes

_CLOCK = r"\d\d?:\d\d"
_STAMPS = "|".join(
    (
        rf"\d{{4}}[-/.]\d\d?[-/.]\d\d?(?:[T_]|,? ){_CLOCK}",
        rf"\d\d?[-/.]\d\d?[-/.]\d{{2,4}}(?:[T_]|,? ){_CLOCK}",
        rf"\d\d?[/ -][A-Z][a-z]{{2}}[/ -]\d{{4}}[: ]{_CLOCK}",
        rf"(?:[A-Z][a-z]{{2}},? )?[A-Z][a-z]{{2}} {{1,2}}\d\d? (?:\d{{4}} )?{_CLOCK}:\d\d",
        rf"[IWEFD]\d{{4}} {_CLOCK}:\d\d",
        rf"{_CLOCK}:\d\d(?:[.,]\d+)?(?=[\s\])|-])",
        r"1\d{9}(?:\.\d{1,9}|\d{3})?(?=[\s\]:|])",
        r" {0,8}\d{1,7}\.\d{3,6}(?=\])",
        r"\d{8}[T-]\d{6}",
        rf"\d{{4}}年\d\d?月\d\d?日 ?{_CLOCK}",
    )
)
_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|CRITICAL|SEVERE|PANIC|EMERG|ALERT"
_FILE = r"[\w./@\\-]{1,120}\.[A-Za-z]{1,6}"
_PROGRAM = r"[a-z][\w.-]{0,30}"

LOG_LINE = compile_late(
    rf"\s{{0,8}}(?:[\[(<]?(?:{_STAMPS})"
    rf"|[\[(<]{_CLOCK}(?: ?[AaPp][Mm])?(?:, ?\d{{1,4}}[-/.]\d\d?[-/.]\d{{1,4}})?[\])>]"
    rf"|{_CLOCK}(?: ?[AaPp][Mm])?\s{{1,4}}(?:[-\u2013\u2014] )?(?:<[^<>]{{1,30}}>"
    rf"|[\w.@-]{{1,30}}(?: [\w.]{{1,20}})?:\s)"
    rf"|\[ ?(?:{_LEVELS}|{_LEVELS.lower()})\s?\]|(?:ERROR|FATAL|CRITICAL|PANIC|SEVERE)(?::| ?\||  "
    rf"| \[| \w+\.\w)"
    r"|(?:[Ff]atal(?: error)?|[Ee]rror|[Pp]anic|Uncaught [A-Z]\w+): \S"
    rf"|{_PROGRAM}: (?:\*\*\* |(?:fatal )?error: |cannot |command not found)|{_PROGRAM}\[\d+\]: "
    r"|(?:time|ts|timestamp|t|level|lvl|severity)=\S+\s\w+=|npm (?:ERR!|WARN|error) "
    r"|\w[\w.]{0,60}[-._]\d{1,4}\s{1,8}\| |\d{1,3}(?:\.\d{1,3}){3} \S+ \S+ \[)"
)
"""A line of a log or chat, with a time or a level, or of a program's error message."""
TRACE_LINE = compile_late(
    r"\s{0,12}(?:Traceback \(most recent call last\)|File \"[^\"]{1,200}\", line \d"
    r"|Exception in thread|Caused by: "
    r"|(?:During handling of|The above exception was)\b.{0,40}\bexception|\.\.\. \d+ (?:more|common frames)"
    r"|at [\w$.<>/@\[\] -]{1,120}\((?:[^()]{0,160}:\d+|[Nn]ative[^()]{0,10}|Unknown Source|<anonymous>|\))"
    r"|at (?:async )?(?:file|node|https?|/|[A-Z]:\\)[^\s]{1,200}:\d+|at [\w.`<>]{1,120}\(.{0,120}\) in \S"
    r"|goroutine \d+ \[|panic: |created by [\w./]+|(?:[\w./@-]{1,160})\.go:\d+ \+0x"
    r"|thread '.{0,40}' panicked"
    r"|#\d{1,3} {1,3}(?:0x[0-9a-f]+|\S+ ?\()|\d{1,3}: +(?:0x[0-9a-f]+ - )?[\w<>]{1,60}::|stack backtrace:"
    r"|(?:[\w$]{1,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Warning|Fault|Panic)(?:: | \[|$)"
    rf"|(?:from )?{_FILE}:\d+:in [`'\"]|--> {_FILE}:\d|{_FILE}:\d+(?::\d+)?: (?:fatal "
    rf"|runtime )?\w{{1,12}}: "
    rf"|{_FILE}\(\d+,\d+\): (?:error|warning)|(?:error|warning)(?:\[\w+\]| TS\d+):|(?:E|>)   +\S"
    r"|\^[~^]{0,80}$|~{2,80}\^|0x[0-9a-f]{6,16}\b|Thread \d+ .{0,40}(?:Crashed|crashed)|\d{1,4} \| "
    r"|(?:DETAIL|HINT|CONTEXT|STATEMENT):  |commit [0-9a-f]{7,40}\b"
    r"|HTTP/\d(?:\.\d)? \d{3}\b|[<>] HTTP/|[~^]{1,80}$)"
)
"""A line of a stack trace, or of a compiler's error message."""
THROWN = compile_late(
    r"(?:[a-z_]\w{0,60}\.){0,8}[A-Z]\w{0,40}[a-z][A-Z]\w{0,40}(?:: |$)"
    r"|(?:[a-z_]\w{0,60}\.){1,8}[A-Z]\w{0,60}(?:: |$)"
)
"""An exception at the end of a trace."""
DIFF_LINE = compile_late(
    r"(?:diff --git |index [0-9a-f]{6,40}\.\.|@@ -\d.{0,60}@@|(?:---|\+\+\+) (?:[ab]/|/dev/null|\S+\t)"
    r"|(?:new|deleted) file mode |\*\*\* (?:Begin|End|Update|Add|Delete) |Index: \S+$|<{7} |>{7} )"
)
"""A header line of a diff."""
DIFF_BODY = compile_late(r"[+\- \t\\@]|diff --git |index |$")
"""A line that may be part of a diff."""
TEST_LINE = compile_late(
    r"\s{0,8}(?:(?:FAILED|PASSED|XFAIL) \S+(?:::|\.)|(?:PASS|FAIL)(?:ED)?:? {1,3}\S+[./]"
    r"|--- (?:FAIL|PASS|SKIP): "
    r"|=== (?:RUN|CONT|PAUSE) |ok  ?\t|(?:not )?ok \d+\b|={3,} .{1,80} ={3,}$"
    r"|_{4,} .{1,80} _{4,}$|[✓✔✗✘\u00d7●○] \S"
    r"|\S{1,120}::\S{1,120} (?:PASSED|FAILED|ERROR|SKIPPED)|test .{1,120} \.\.\. (?:ok|FAILED|ignored)"
    r"|running \d+ tests?|test result: |collected \d+ items?|Tests?:? {1,8}\d+ (?:passed|failed)"
    r"|\d+ (?:passed|failed|passing|failing|pending|examples?),? .{0,60}(?:\d|in )|\d+ (?:passing"
    r"|failing)\b"
    r"|Failures?:$|Test (?:Suites|Case|Suite)\b.{0,80}(?:passed|failed|started)|Ran \d+ tests? in"
    r"|Snapshots: |Step \d{1,3}/\d{1,3} : |\s{0,8}---> \S|Successfully (?:installed|built|tagged) \S"
    r"|\s{2,12}(?:Compiling|Checking|Downloading|Downloaded|Finished|Building|Unpacking|Running) \S"
    r"|Collecting \S{1,80}$|(?:added|removed|changed) \d+ packages?\b|found \d+ vulnerabilit"
    r"|Expected: |Received: |\S{1,160}+ {1,20}\[ {0,2}\d{1,3}%\])"
)
"""A line that a test runner prints."""
PROMPT_LINE = compile_late(
    r"(?:\([\w./-]{1,30}\) ?)?(?:\[?[\w.-]{1,40}@[\w.-]{1,60}[: ][^$#%>]{0,80}[$#%>] ?"
    r"|PS [A-Z]:\\[^>]{0,80}> ?"
    r"|[A-Z]:\\[^>]{0,80}>|>>> |\((?:gdb|lldb|[Pp]db)\) |In \[\d+\]: |Out\[\d+\]: |(?:mysql|sqlite|mongo"
    r"|MariaDB \[.{0,30}\])> |irb\(.{1,20}\)"
    r"|\w{1,30}[=-][#>] |[➜\u276fλ] +\S|(?:bash|sh|zsh)-?[\d.]*[$#] )"
)
"""A line after the prompt of somebody's terminal."""
COMMAND_LINE = compile_late(r"\s{0,4}[$%] [\w./~-]")
"""A command after a bare `$` or `%`; alone it may be the user's own order."""
TABLE_LINE = compile_late(
    r"\s{0,8}(?:\+[-+=]{3,200}\+?$"
    r"|\|?[ :]{0,3}[-=─━]{3,80}[ :]{0,3}(?:[+|┼ ]{1,3}[ :]{0,3}[-=─━]{2,80}[ :]{0,3}){1,40}\|?$"
    r"|total \d{1,12}$|[dlbcps-][rwxsStT-]{9}[.+@]? +\d|(?:[\d*/,-]{1,30} ){4}[\w*/,-]{1,30} \S"
    r"|\(\d+ rows?\)|\d+ rows? in set|Query OK|[│┃║┌├└╔╠╚┏┣┗])"
)
"""A line of a drawn table, or of a database's summary below one."""
MARKUP_LINE = compile_late(
    r"\s{0,40}</?[A-Za-z!?][^<>]{0,300}>(?:.{0,300}>)?$"
    r"|\s{0,40}</?[A-Za-z][\w:-]{0,40}[^<>]{0,300}$|\s{0,40}<!--"
)
"""A line that begins with a tag and ends with one."""
WIKI_LINE = compile_late(
    r"(={2,5}) [^=\n]{1,80} \1$|h[1-6]\. \S|\[\[(?:Category|Kategorie|Datei|File|Image):"
    r"|\{\{[^{}]{1,120}\}\}$"
    r"|'''[^']{1,80}'''|\{(?:toc|info|warning|panel|note)\b[^{}]{0,80}\}|\^?\|\||\^ .{1,120} \^$"
)
"""A line of a wiki's source."""
CAPTION_LINE = compile_late(
    r"(?:\d\d?:)?\d\d:\d\d[.,]\d{3} --> |WEBVTT\b|\[?\(?(?:\d\d?:)?\d\d:\d\d\)?\]? [A-Z]\w{1,20}: "
)
"""A line of a transcript of speech that gives the time of the next one."""
SPEAKER_HEAD = compile_late(
    r"(?:[^\W\d][\w.'-]{0,24}(?: [^\W\d][\w.'-]{0,24}){0,3}|<?@[\w.-]{1,30}>?)"
    r"(?:\s{1,4}[-\u2013\u2014•·|] |,? {1,4})[\[(]?(?:(?:[Tt]oday|[Yy]esterday|[Hh]eute"
    r"|[Gg]estern|[Hh]oy|[Aa]ujourd'hui|[Hh]oje"
    r"|今天|昨天|今日|昨日)(?: at| um| a las| à|,)? )?"
    r"(?:(?:\d{1,4}[-/.])?\d\d?[-/.]\d{1,4},? )?"
    r"\d\d?[:h]\d\d(?::\d\d)?(?: ?[AaPp]\.?[Mm]\.?)?[\])]?(?: Uhr)?$"
)
"""A name with a time, alone on its line, as chats print it above a message."""
SPOKEN_LINE = compile_late(
    r"[A-Z][\w.'-]{0,24}(?: [\w.'-]{1,24}){0,2} ?[\[(](?:\d\d?:)?\d\d?:\d\d[\])]:? {1,2}\S"
)
"""A line of a transcript of speech: a name, a time in brackets, and the words."""
SPEAKER = compile_late(
    r"(<[^<>\n]{1,30}>|@?[^\W\d_][\w.'-]{0,24}(?: [\w.'()-]{1,24}){0,2}(?:_\d+)?)(?::|\uff1a"
    r"| ?>)(?:\s|(?<=\uff1a))\s*(?=\S)|(<[\w@+. -]{1,30}>) "
)
"""The name of a speaker before their words."""
FIELD = compile_late(r"(\s*)(?:- )?[\w.\"'/-]{1,60}(?: [\w-]{1,20}){0,2} ?[:=](?:\s|$)")
"""A key with its value."""
ASSIGNMENT = compile_late(
    r"\s{0,8}(?:export |set )?[A-Z][A-Z0-9_]{2,60}=|\s{0,8}[\w.-]{1,60} ?= ?[\w\"'\[{/.-]"
)
"""A variable or a setting with its value."""
SECTION = compile_late(
    r"\[\[?[\w.\" :-]{1,60}\]?\]$|---$|(?:apiVersion|version|services|kind|on|jobs): ?\S*$"
)
"""A section header of a settings file."""
NESTED = compile_late(r"(?:  |\t)\s{0,40}(?:- )?[\w.\"'/-]{1,60}:(?:\s|$)")
"""A key within another."""
CODE_LINE = compile_late(
    r"\s{0,60}(?:(?:def|class|async def|func|fn|pub fn|impl|struct|interface|namespace|package"
    r"|module) [\w<>. ]{1,60}[({:;\[]?.{0,120}[:{;)]$"
    r"|(?:import|from|using|use|require|include|#include) [\w.\"'<>{}/:*, @-]{1,120};?$"
    r"|(?:package|module) [\w.]+;?$"
    r"|(?:const|let|var|val|final|static|public|private|protected|export|auto) .{0,120}[=({;]"
    r"|(?:if|for|while|switch|elif|else if|catch|match) ?\(?.{1,120}\)? ?[{:]$|(?:else|try"
    r"|finally|do)(?: ?[{:])$|[}\])]{1,6}[;,]?$"
    r"|(?:return|raise|throw|yield|await) .{0,120}[;)\]]$|return\b.{0,40}$|@\w[\w.]{0,60}(?:\(.{0,80}\))?$"
    r"|[\w.\[\]>*&:-]{1,80}(?:\(.{0,160}\)|\s?[-+*/|]?:?= .{1,160});?$|.{1,200}[;{]$|(?:SELECT"
    r"|INSERT|UPDATE|DELETE|CREATE|ALTER) \S"
    r"|(?:FROM|WHERE|JOIN|LEFT JOIN|GROUP BY|ORDER BY|VALUES|SET|LIMIT|AND|OR) .{1,160}$|end$|#!/)"
)
"""A line of code."""
COMMENT = compile_late(r"\s{0,60}(?:#(?!#)|//|/\*|\*(?: |/|$)|--(?: |$)|;|%|<!--|\"\"\")")
"""A comment in code or settings."""
LIST_ITEM = compile_late(
    r"\s{0,12}(?:(?:[-*+•·\u2013]|[a-zA-Z][.)])\s|\d{1,3}[.)、]|[(\uff08]?[\d一二三四五六七八九十]{1,3}[)\uff09、.])"
)
"""An item of a list."""
CONTINUED = compile_late(r"(?:\s{2,}|\t)\S|[+|:>^~.]{1,3}\s|[)}\]]")
"""A line that continues the one above."""


def stands_alone(head: str) -> bool:
    """Check whether a line alone shows that a program printed it or somebody else wrote it."""
    return bool(
        LOG_LINE.match(head)
        or TRACE_LINE.match(head)
        or TEST_LINE.match(head)
        or DIFF_LINE.match(head)
        or PROMPT_LINE.match(head)
        or TABLE_LINE.match(head)
        or WIKI_LINE.match(head)
        or CAPTION_LINE.match(head)
    )


_SOURCE = get_phrases("names-source")
_ONLY_SOURCE = get_phrases("only-names-source")
_HANDED = get_phrases("hands-over")
_OWN = get_phrases("own-again")
_STRANGER = get_phrases("stranger-order")
_SHOUTED = compile_late(r"(?<![\w./-])[A-ZÄÖÜÉÈÁÍÓÚÑÇ]{4,40}(?![\w./-])")
_COLON = (":", "\uff1a")
_ASKS = ("?", "\uff1f", "吗", "吗。", "呢", "か", "か。")
_INNER = compile_late(r"[^:\uff1a]{2,120}(?:: |\uff1a)(?=\s?\S)")
_WIDE = compile_late("[\u3040-\u30ff\u4e00-\u9fff]")
_LONGEST_LEAD = 160
_LONGEST_CLOSING = 320
_FEWEST_WORDS = 5
_FEWEST_WIDE = 10


def is_lead(line: str) -> bool:
    """Check whether a line introduces the text below it."""
    return line.rstrip().endswith(_COLON) and len(line) <= _LONGEST_LEAD


def names_source(line: str) -> bool:
    """Check whether a line says that the text below it is from somebody or something else."""
    plain = plain_apostrophes(line[-_LONGEST_LEAD:])
    if is_lead(line):
        return bool(_SOURCE.search(plain) or _ONLY_SOURCE.fullmatch(plain) or _HANDED.search(plain))
    return bool(_HANDED.search(plain))


def find_others_words(line: str) -> int:
    """Return where others' words begin on a line that also names their source; 0 if it names none."""
    found = _INNER.match(line)
    if found is None or not _SOURCE.search(plain_apostrophes(found[0].rstrip())):
        return 0
    rest = line[found.end() :].strip()
    if resumes_own_words(rest):
        return 0
    wide = sum(1 for _ in _WIDE.finditer(rest))
    return found.end() if len(rest.split()) >= _FEWEST_WORDS or wide >= _FEWEST_WIDE else 0


def is_stranger_order(text: str) -> bool:
    """Check whether the text gives orders the way strangers do: in capitals, or to whoever reads it."""
    return bool(_STRANGER.search(plain_apostrophes(text)) or _SHOUTED.search(text))


def has_stranger_order(lines: Sequence[str]) -> bool:
    """Check whether lines next to pasted ones are more likely a stranger's than the user's."""
    return any(is_stranger_order(line) and not line.rstrip().endswith(_ASKS) for line in lines)


def resumes_own_words(line: str) -> bool:
    """Check whether a line below pasted ones sounds like the user: a question or a typical order."""
    line = plain_apostrophes(line.strip())
    if not line or len(line) > _LONGEST_CLOSING or is_stranger_order(line):
        return False
    return line.endswith(_ASKS) or bool(_OWN.match(line))
