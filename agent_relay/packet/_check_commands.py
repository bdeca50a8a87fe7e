"""Find the commands that checked the work (tests, lint, types), and whether each check passed."""

import re
import shlex
from dataclasses import dataclass
from typing import Literal, get_args

from agent_relay.domain.facts import CommandRun
from agent_relay.domain.text.plain import compile_late
from agent_relay.packet.extract.phrases import get_phrases

Kind = Literal["tests", "lint", "typecheck"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_TESTS = (
    *("pytest", "py.test", "unittest", "nosetests", "tox", "nox", "stestr", "behave", "ctest", "bats"),
    *("jest", "vitest", "mocha", "ava", "tap", "karma", "playwright", "cypress", "rspec", "phpunit"),
    "gotestsum",
)
_LINT = (
    *("ruff", "flake8", "pylint", "black", "isort", "pre-commit", "yamllint", "shellcheck", "hadolint"),
    *("eslint", "biome", "oxlint", "stylelint", "prettier", "standard", "xo", "markdownlint"),
    *("golangci-lint", "rubocop", "clippy"),
)
_TYPES = ("mypy", "pyright", "basedpyright", "ty", "pyre", "pytype", "tsc", "vue-tsc", "flow")

PROGRAMS: dict[str, Kind] = {
    **dict.fromkeys(_TESTS, "tests"),
    **dict.fromkeys(_LINT, "lint"),
    **dict.fromkeys(_TYPES, "typecheck"),
}

_TESTING = (
    *("go", "cargo", "npm", "pnpm", "yarn", "bun", "deno", "swift", "dotnet", "mix", "make", "just"),
    *("gradle", "mvn", "rake", "rails", "zig", "bazel", "hatch", "meson"),
)
SUBCOMMANDS: dict[tuple[str, str], Kind] = {
    **{(program, "test"): "tests" for program in _TESTING},
    ("npm", "t"): "tests",
    ("cargo", "nextest"): "tests",
    ("node", "--test"): "tests",
    ("cargo", "clippy"): "lint",
    ("cargo", "fmt"): "lint",
    ("go", "vet"): "lint",
    ("deno", "lint"): "lint",
    ("cargo", "check"): "typecheck",
    ("deno", "check"): "typecheck",
}

# Their own targets and scripts are told by name.
RUNNERS = frozenset(
    {"make", "just", "npm", "pnpm", "yarn", "bun", "task", "rake", "gradle", "gradlew", "deno"}
)

# Programs that run another one, and the words of theirs that stand before it.
WRAPPERS: dict[str, frozenset[str]] = {
    **{
        name: frozenset({"run"})
        for name in ("uv", "poetry", "pdm", "hatch", "rye", "pipenv", "pixi", "coverage")
    },
    "bundle": frozenset({"exec"}),
    "pnpm": frozenset({"exec", "dlx"}),
    "yarn": frozenset({"exec", "dlx"}),
    "npm": frozenset({"exec"}),
    "bun": frozenset({"x"}),
}
PLAIN_WRAPPERS = frozenset(
    {"npx", "bunx", "uvx", "time", "env", "sudo", "nice", "command", "exec", "xvfb-run", "stdbuf"}
)
SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
# Flags of wrappers that take the next word as their value.
VALUED_FLAGS = frozenset(
    {"--with", "--extra", "--group", "--python", "-p", "--package", "-n", "-u", "--project", "-C"}
)


Verdict = Literal["passed", "failed"]

_ASSIGNMENT = compile_late(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = compile_late(r"(?:python|pypy)\d*(?:\.\d+)?$")
_TEST_SCRIPT = compile_late(r"(?:run[-_]?)?tests?(?:\.\w+)?")
_TARGETS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (compile_late(r"(?:.*[:_-])?(?:type-?check|types|mypy|tsc)(?:[:_-].*)?"), "typecheck"),
    (compile_late(r"(?:.*[:_-])?(?:lint|format-check|fmt)(?:[:_-].*)?"), "lint"),
    (compile_late(r"(?:.*[:_-])?(?:tests?|check|spec|ci|unit|e2e|integration)(?:[:_-].*)?"), "tests"),
)
_FAILURES = {kind: get_phrases(f"{kind}-failed") for kind in KINDS}
_SUCCESSES = {kind: get_phrases(f"{kind}-passed") for kind in KINDS}
_TELLING = get_phrases("telling-line")
_MAX_WORDS = 40


@dataclass(frozen=True, slots=True)
class Check:
    """One check within a command. `is_certain` is whether the command's status is this check's own."""

    kind: Kind
    is_certain: bool


def find_checks(command: str) -> list[Check]:
    """Find the checks a command line ran, also behind `cd x &&`, wrappers, variables and pipes."""
    found: list[Check] = []
    parts = _split_command(command)
    for index, (words, _) in enumerate(parts):
        kind = find_kind(words)
        if kind is not None and not any(check.kind == kind for check in found):
            # A later `&&` runs only after success; after `|`, `;` or `||` the status is another's.
            after = [joint for _, joint in parts[index:-1]]
            found.append(Check(kind, all(joint == "&&" for joint in after)))
    return found


def find_kind(words: list[str]) -> Kind | None:
    """Return what a single command checks, or `None` if it checks nothing."""
    words = _strip_wrappers(words)
    if not words or {"--version", "--help"} & set(words):
        return None
    program = words[0].rsplit("/", 1)[-1]
    rest = [word for word in words[1:] if not word.startswith("-") or word == "--test"]
    kind = PROGRAMS.get(program) or (SUBCOMMANDS.get((program, rest[0])) if rest else None)
    if program in ("ruff", "biome") and rest[:1] == ["format"] and "--check" not in words:
        kind = None  # it changes files, it does not check them
    elif program in SHELLS:
        checks = find_checks(_find_script(words))
        kind = checks[0].kind if checks else None
    elif kind is None and program in RUNNERS:
        kind = next((found for word in rest for pattern, found in _TARGETS if pattern.fullmatch(word)), None)
    elif kind is None and _TEST_SCRIPT.fullmatch(program) and words[0] != "test":
        kind = "tests"
    return kind


def _find_script(words: list[str]) -> str:
    """Return a shell's command line (the word after a flag with `c`), or the script it was to run."""
    flags = [index for index, word in enumerate(words[:3]) if word.startswith("-") and "c" in word]
    inner = words[flags[0] + 1 :] if flags else words[1:]
    return inner[0] if inner else ""


def _strip_wrappers(words: list[str]) -> list[str]:
    """Return the words of the command itself, without the wrappers that run it."""
    words = words[:_MAX_WORDS]
    while words:
        program = words[0].rsplit("/", 1)[-1]
        if _ASSIGNMENT.match(words[0]) or program in PLAIN_WRAPPERS:
            words = _drop_flags(words[1:])
        elif program == "timeout":
            words = _drop_flags(words[1:])[1:]
        elif program in WRAPPERS and words[1:] and words[1] in WRAPPERS[program]:
            words = _drop_flags(words[2:])
        elif _PYTHON.match(program) and "-m" in words[1:4]:
            words = words[words.index("-m") + 1 :]
        else:
            break
    return words


def _drop_flags(words: list[str]) -> list[str]:
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in VALUED_FLAGS else words[1:]
    return words


def _split_command(command: str) -> list[tuple[list[str], str]]:
    """Split a command line into its simple commands, each with the operator that joins it to the next."""
    parts: list[tuple[list[str], str]] = []
    for line in command.replace("\\\n", " ").split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        words: list[str] = []
        try:
            for word in lexer:
                if word and set(word) <= set(";|&"):
                    parts.append((words, word))
                    words = []
                elif not set(word) <= set("()<>"):
                    words.append(word)
        except ValueError:
            pass  # an open quote: what came before it still counts
        if words:
            parts.append((words, ";"))
    return [(words, joint) for words, joint in parts if words]


def judge(run: CommandRun, check: Check, *, is_only: bool) -> Verdict | None:
    """Tell whether a check passed: by its status if that is its own, else by what it printed."""
    if run.exit_code == 0 and check.is_certain:
        return "passed"
    if _FAILURES[check.kind].search(run.output):
        return "failed"
    if _SUCCESSES[check.kind].search(run.output):
        return "passed"
    if run.exit_code and check.is_certain and is_only:
        return "failed"
    return None


def find_telling_line(output: str) -> str:
    """Return the most informative line of a failed command's output, empty if it printed nothing."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    first = next((line for line in lines if line.startswith(("FAILED", "--- FAIL", "not ok"))), "")
    told = [line for line in lines if _TELLING.search(line)]
    return first or (told[-1] if told else lines[-1] if lines else "")
