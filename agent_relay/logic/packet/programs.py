"""Programs that check work, and programs that run other programs."""

from typing import Literal

Kind = Literal["tests", "lint", "typecheck"]

_TESTS = (
    *("pytest", "py.test", "unittest", "nosetests", "tox", "nox", "stestr", "behave", "ctest", "bats"),
    *(
        "jest",
        "vitest",
        "mocha",
        "ava",
        "tap",
        "karma",
        "playwright",
        "cypress",
        "rspec",
        "phpunit",
        "gotestsum",
    ),
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
    *(
        "go",
        "cargo",
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "deno",
        "swift",
        "dotnet",
        "mix",
        "make",
        "just",
        "gradle",
    ),
    *("mvn", "rake", "rails", "zig", "bazel", "hatch", "meson"),
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
