"""What the written pages claim is what the code has: operations, fields, samples, lists."""

import os
import re
import tomllib
import typing

import msgspec
import pytest

from agent_relay.detect._limits import match_rule
from agent_relay.detect.screen_state import match_state
from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.documents.config import (
    AgentConfig,
    BudgetConfig,
    ContextConfig,
    ExportConfig,
    HandoffConfig,
    RedactionConfig,
    UserConfig,
)
from agent_relay.domain.documents.handwritten import Strict
from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.documents.rules import ResetForm, Rules
from agent_relay.domain.protocol.operations import OPERATIONS
from agent_relay.domain.values import replace
from agent_relay.faces.cli.commands import COMMANDS
from agent_relay.faces.cli.installation import TEMPLATE
from agent_relay.faces.export._figures import SENT_EVENTS, build_figures
from agent_relay.faces.watch.view import View
from agent_relay.terminal import holder
from agent_relay.transcripts.fact_readers import READERS
from agent_relay.transcripts.usage_readers import USAGE_READERS
from tests.house import tree


def _list_words(text: str) -> set[str]:
    """Everything in backticks, word by word, without the brackets of lists."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return {
        word.removesuffix("[]")
        for marked in re.findall(r"`([^`]+)`", text)
        for word in re.split(r"[\s,]+", marked)
    }


def test_every_operation_of_the_daemon_is_on_its_page() -> None:
    """Whoever writes another client has nothing else to go by."""
    page = tree.read_text("docs/wire.md").partition("## Client or daemon, and holder")[0]
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \|(.*?)\| ", page, re.MULTILINE))
    assert rows.keys() - OPERATIONS.keys() == {"hello"}
    for name, operation in OPERATIONS.items():
        fields = {one.encode_name for one in msgspec.structs.fields(operation.fields)}
        assert fields - _list_words(rows[name]) - {"root"} == set(), name


def test_every_operation_of_the_holder_is_listed() -> None:
    """Holders outlive upgrades: what they answer is a promise."""
    operations = set(
        re.findall(
            r'^    "([a-z]+)": _', tree.read_text("agent_relay/terminal/holder/_operations.py"), re.MULTILINE
        )
    )
    assert len(operations) == 20
    page = tree.read_text("docs/wire.md").partition("## Client or daemon, and holder")[2]
    assert operations - _list_words(page) == set()
    assert operations - _list_words(holder.__doc__ or "") == set()


def test_every_field_of_a_packet_is_on_its_page() -> None:
    """The format is a promise to readers that are not ours."""
    fields = {field.alias or name for name, field in ResumePacket.model_fields.items()}
    assert fields - _list_words(tree.read_text("docs/packet-format.md")) == set()


@pytest.mark.parametrize(
    ("model", "page"),
    [
        (UserConfig, "config"),
        (AgentConfig, "config"),
        (ContextConfig, "context"),
        (HandoffConfig, "context"),
        (BudgetConfig, "budgets"),
        (RedactionConfig, "packet-format"),
        (ExportConfig, "exporters"),
    ],
)
def test_every_key_of_the_configuration_is_on_its_page(model: type[Strict], page: str) -> None:
    """A key nobody reads of is found by reading code, or not."""
    text = tree.read_text(f"docs/{page}.md")
    keys = model.__struct_encode_fields__
    assert {
        key for key in keys if not re.search(rf"^(?:\[*|# )?{key}\b|`\[*{key}\b", text, re.MULTILINE)
    } == set()


def test_the_sample_configuration_is_one() -> None:
    """It is copied, too; where it says what happens without it that is so."""
    (sample,) = re.findall(r"```toml\n(.*?)```", tree.read_text("docs/config.md"), re.DOTALL)
    config = UserConfig.parse(tomllib.loads(sample))
    assert replace(config, order=(), agents={}) == UserConfig()
    (agent,) = config.agents.values()
    assert replace(agent, budget_tokens=None) == AgentConfig()


def test_the_sample_adapter_is_one_and_its_rules_prove_themselves() -> None:
    """It is copied before it is understood."""
    samples = re.findall(r"```toml\n(.*?)```", tree.read_text("docs/adapters.md"), re.DOTALL)
    adapter, rules = (
        Adapter.parse(tomllib.loads(samples[0])),
        Rules.parse(tomllib.loads(samples[1])),
    )
    assert adapter.name == "zed"
    for limit in rules.limits:
        assert [line for line in limit.accepts if match_rule(limit, line) is None] == []
        assert [line for line in limit.rejects if match_rule(limit, line) is not None] == []
    for state in rules.states:
        assert [line for line in state.accepts if not match_state(state, line)] == []
        assert [line for line in state.rejects if match_state(state, line)] == []


def test_every_name_an_adapter_chooses_from_is_on_its_page() -> None:
    """Whoever writes an adapter should not have to look into the code for the words it takes."""
    words = set(re.findall(r"[a-z][a-z-]+", tree.read_text("docs/adapters.md")))
    assert {*READERS, *typing.get_args(ResetForm)} - words == set()
    assert set(READERS) == set(USAGE_READERS)


def test_the_configuration_that_init_writes_says_what_is_so_without_it() -> None:
    """A line is made true by taking its mark away; a key that is missing there is not thought of."""
    lines = [re.sub(r"^# (?=[a-z_]+ = |\[)", "", line) for line in TEMPLATE.splitlines()]
    # The order it shows is an example: which agents there are, nobody can say for everybody.
    lines = [line for line in lines if not line.startswith("order = ")]
    config = UserConfig.parse(tomllib.loads("\n".join(lines)))
    (agent,) = config.agents.values()
    assert replace(agent, budget_tokens=None) == AgentConfig()
    assert replace(config, agents={}) == UserConfig()
    own = set(UserConfig.__struct_encode_fields__)
    tables = {"context", "export", "budgets"}
    assert {key for key in own - tables if not re.search(rf"^# \[*{key}\b", TEMPLATE, re.MULTILINE)} == set()


def test_every_exported_figure_and_event_is_on_its_page() -> None:
    """Dashboards and receivers are built from it, and break where a name changes unseen."""
    words = _list_words(tree.read_text("docs/exporters.md"))
    figures = build_figures([], {}, View())
    names = {f"agent_relay_{one.name}{'_total' if one.kind == 'counter' else ''}" for one in figures}
    labels = {label for one in figures for label in one.labels}
    assert (names | labels | {f"agent_relay.{one.name}" for one in figures} | SENT_EVENTS) - words == set()


@pytest.mark.parametrize("page", ["CHANGELOG.md", "docs/cli.md"])
def test_every_command_is_told_of(page: str) -> None:
    """A command nobody reads of is not there."""
    told = _list_words(tree.read_text(page))
    assert set(COMMANDS) - told == set()


def test_every_command_on_a_page_is_one() -> None:
    """A page whose command is answered with "there is no such command" is not believed again."""
    known = set(COMMANDS) | set(tree.adapter_names()) | {"agent", "hooks", "scribe"}
    # What commands print, of themselves too, is no command.
    printed = ("docs/tried-by-hand.md", "docs/handoff-on-screen.md")
    options = set(re.findall(r"--[a-z][a-z-]+", tree.read_text("docs/cli.md")))
    wrong, seen = [], 0
    for name in tree.tracked_files():
        is_page = name.endswith(".md") and name.startswith(("README", "docs/", "examples/"))
        if is_page and name not in printed:
            spans = re.findall(r"```(?:sh)?\n(.*?)```|`([^`\n]+)`", tree.read_text(name), re.DOTALL)
            for line in "\n".join(map("".join, spans)).splitlines():
                for word, rest in re.findall(r"agent-relay ([a-z][a-z-]*)\b([^#&|>\"]*)", line):
                    seen += 1
                    given = re.findall(r"(?<!\S)--[a-z][a-z-]+", rest.partition(" -- ")[0])
                    wrong += [f"{name}: {line}"] if word not in known or set(given) - options else []
    assert (wrong, seen > 100) == ([], True)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md", "docs/adapters.md"])
def test_every_module_on_a_page_is_there(page: str) -> None:
    """The walks through the code and the table of changes are what a stranger finds the way by."""
    files = set(tree.tracked_files())
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|toml|j2|md))`", tree.read_text(page)))
    assert named
    assert {name for name in named if not {name, f"agent_relay/{name}"} & files} == set()


def test_every_decision_is_in_the_list() -> None:
    """A decision that cannot be found is made again, otherwise."""
    index = tree.read_text("docs/adr/README.md")
    for name in sorted(os.listdir(os.path.join(tree.CHECKOUT, "docs", "adr"))):
        if name != "README.md":
            number, _, title = tree.read_text(f"docs/adr/{name}").partition("\n")[0][2:].partition(". ")
            assert f"| {number} | [{title}]({name}) |" in index
