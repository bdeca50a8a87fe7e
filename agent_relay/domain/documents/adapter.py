"""The model of an adapter's `adapter.toml`: how an agent starts, is fed, leaves evidence and quits.

What the records of a headless agent's standard output mean is data, too: its `StreamRule`s.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta, field

from agent_relay.domain.documents.agent_configuration import Hooks, ProxySpec, ToolExtension
from agent_relay.domain.documents.handwritten import Strict
from agent_relay.domain.documents.rules import VersionRange, Where
from agent_relay.domain.names import find_newest
from agent_relay.domain.values import replace

Meaning = Literal["text", "thought", "tool", "result", "edit", "plan", "usage", "refused", "done", "failed"]
Token = Literal["input", "cached", "cache_write", "output", "reasoning"]


class Steps(Strict, frozen=True):
    """Place of a plan's steps: `each` is the list of a whole plan; without it the part is one step of it.

    A step is recognised by its `id`; fields that a record leaves out stay as they were.
    """

    each: str = ""
    text: str = ""
    id: str = ""
    status: str = ""


class Totals(Strict, frozen=True):
    """Records of the transcript that total what a conversation used so far, and the paths of its `tokens`."""

    where: Where
    tokens: dict[Token, str]


class StreamRule(Strict, frozen=True):
    """One kind of record, and what it tells. Paths step through objects and lists as `Where`'s do.

    `text` is the agent's words to the user, `thought` what it thinks to itself, `tool` a call it makes,
    `result` what came of one, `edit` how one changed a file, `plan` what it means to do, `usage` what its
    requests took; `refused` names a tool it was not allowed to use, or the `id` of the call; `done` says that
    the turn is over and well, `failed` that it is over and why. A turn called done with nothing of all that
    has failed: the `text` of `done` is why. With `each`, every entry of that list counts for itself, if `of`
    means it.

    `text` is where the words stand (a tool's are its input, an edit's a unified diff), `name` and `id` are
    the tool's, `failed` is which results are failures. A tool that is `about` the plan is told as one. Words
    that are `pieces` of one message have no line's end between them. `path` is an edit's file; where no diff
    is told, `hunks` is a list of `oldStart oldLines newStart newLines lines`, or `before` and `after` are
    what was replaced. `tokens` and `cost` (US dollars) are paths. With `totals`, `tokens` are of the whole
    conversation, earlier turns included, and what the transcript told of those is taken off.
    """

    means: Meaning
    where: Where = Where()
    each: str = ""
    of: Where = Where()
    text: str = ""
    name: str = ""
    id: str = ""
    failed: Where | None = None
    pieces: bool = False
    about: Literal["", "plan"] = ""
    path: str = ""
    hunks: str = ""
    before: str = ""
    after: str = ""
    steps: Steps = Steps()
    tokens: dict[Token, str] = field(default_factory=dict)
    cost: str = ""
    totals: Totals | None = None


class FileTemplate(Strict, frozen=True):
    """A file written into the leg's folder before the agent starts, rendered from an adapter template.

    The template sees `hook_command` (words for a shell), the launch values, a filter `shell` that quotes,
    and for each of `reads` the JSON object in that file, `{}` where there is none: so that what the user
    set for themselves can be wrapped instead of replaced. Paths of `reads` are forms like a source's.
    """

    name: str
    template: str
    reads: dict[str, str] = field(default_factory=dict)


class Launch(Strict, frozen=True):
    """The argument vector and environment of a leg.

    Arguments may hold `{native_id} {model} {leg_folder} {packet} {port} {password} {cwd}`; a list whose
    placeholder has no value is left out whole. No packet text and no user text ever stands in `args`:
    `ps` shows them to everybody. `session_flags` are the arguments by which a user chooses a native session
    themselves; a leg with one of them is given no id of ours. `relaunch_status` is the exit status with which
    the program asks to be started again; 0 for none. `efforts` are the levels of effort others have, too;
    `effort_words` the words that choose one, `{effort}` last; relay uses the first form.

    `tool_args` and `tool_env` give the agent relay's tools, by the program it starts as their MCP server:
    `{mcp_program}` is that as a JSON string, `{mcp_args}` its arguments as a JSON list, `{mcp_words}` both in
    one. They are left out where the user wants no tools. `tool_env` are variables that hold a JSON object,
    into which ours is merged; one that the user has set to something else stays as it is.
    """

    program: str
    args: tuple[str, ...] = ()
    fresh_args: tuple[str, ...] = ()
    resume_args: tuple[str, ...] = ()
    model_args: tuple[str, ...] = ()
    efforts: tuple[str, ...] = ()
    effort_words: tuple[str, ...] = ()
    packet_args: tuple[str, ...] = ()
    tool_args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    tool_env: dict[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    files: tuple[FileTemplate, ...] = ()
    native_id: Literal["uuid4", "unknown"] = "unknown"
    session_flags: tuple[str, ...] = ()
    needs_port: bool = False
    relaunch_status: Annotated[int, Meta(ge=0, le=255)] = 0


class Deliver(Strict, frozen=True):
    """Delivery of text to a ready agent.

    `packet_by` "args" means `launch.packet_args` name the packet's file and only `opening` is typed;
    "paste" means the packet's text and the opening are pasted (bracketed) and submitted.
    `packet_escapes` are replacements made in a pasted packet only, for agents that act on marks inside
    pasted text. The user's own task is pasted as it is. `compact` is the agent's own command that makes its
    conversation shorter; empty where it has none. With `opens_page`, its work is shown on another page than
    its first prompt, and keys typed before that page is there are lost.
    """

    packet_by: Literal["args", "paste"]
    opening: str
    submit: str = "\r"
    submit_delay_ms: int = 100
    packet_escapes: dict[str, str] = field(default_factory=dict)
    compact: str = ""
    opens_page: bool = False


class QuitStep(Strict, frozen=True, kw_only=True):
    """One polite-to-firm step of ending the agent: keys, or a Unix signal to its group, then a wait."""

    keys: str = ""
    signal: Literal["", "SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"] = ""
    wait_s: Annotated[float, Meta(gt=0, le=30)]
    only_when: Literal["", "ready", "busy", "asking"] = ""


Role = Literal[
    "hook", "transcript", "status-line", "log", "telemetry", "event", "state-file", "stream", "proxy"
]


class Snapshot(Strict, frozen=True):
    """A URL answering what an event stream does not say, or said before we listened.

    `each` turns each entry of the answered object into a record, "$key" and "$value" replaced.
    """

    url: str
    each: dict[str, object] = field(default_factory=dict)


class SourceSpec(Strict, frozen=True):
    """One structured source of evidence.

    `path` may hold `{leg_folder} {native_id} {home} {pid} {cwd} {cwd_slug} {port} {password}`, the first
    n characters of a value as `{native_id:8}`, environment forms `{NAME:-default}` (a default may hold
    others), and `*`/`**` globs. Files born or changed after the leg started count, from what they held
    then; an unknown native id matches any. `belongs` narrows a glob to the files whose first records say
    so: dotted field names and the value they must have, as `{"payload.cwd": "{cwd}"}`, in a record that
    satisfies `belongs_where`. `held_open` says that the agent has such a file open for as long as it works in
    it: then a file that its processes do not have open is somebody else's, whatever stands in it.
    `framing` says how the file becomes records: `jsonl`, `lines` (one record a log entry, continuation
    lines joined), `json-stream` (concatenated objects), `json` (whole file, re-read on change), `sse`
    (`path` is a URL on this machine). `role` names the record source for the detector's rules.
    `names` are the dotted fields of a record that tell the leg's "native_id" and "transcript" path: the
    newest counts, because a user may begin another conversation in the same process; only records that
    satisfy `names_where` tell it. `snapshots` are asked each time an event stream is opened.
    """

    role: Role
    framing: Literal["jsonl", "lines", "json-stream", "json", "sse"]
    path: str
    belongs: dict[str, str] = field(default_factory=dict)
    belongs_where: Where = Where()
    held_open: bool = False
    names: dict[Literal["native_id", "transcript"], str] = field(default_factory=dict)
    names_where: Where = Where()
    user: str = ""
    password: str = ""
    snapshots: tuple[Snapshot, ...] = ()


class Transcript(Strict, frozen=True):
    """The place of the agent's native sessions, and the named reader that understands them.

    `usage` are patterns of every file that tells what was used, also those of subagents and those put aside:
    forms like a source's path, `{folder}/{pattern}` where there are none. `held_open` is as a source's.
    """

    reader: str
    folder: str
    pattern: str
    held_open: bool = False
    usage: tuple[str, ...] = ()


class AnswerFailure(Strict, frozen=True):
    """A record that says the run failed, told by dotted fields and their values, and where it says why.

    `is_empty` marks one that says no more than that the agent answered without a word.
    """

    when: dict[str, bool | str]
    text: str
    is_empty: bool = False


class Answer(Strict, frozen=True):
    """The answer's place in a headless run's standard output.

    "plain" is the output as it is. "json-lines" is one object a line: records whose dotted fields have the
    values of `when` hold text in the field `text`; of several the "last" counts, or the last unbroken "run"
    put together. Without a record like `done` the answer broke off, whatever the exit status says.
    """

    format: Literal["json-lines", "plain"]
    when: dict[str, bool | str] = field(default_factory=dict)
    text: str = ""
    join: Literal["last", "run"] = "last"
    done: dict[str, bool | str] = field(default_factory=dict)
    failures: tuple[AnswerFailure, ...] = ()


class UserServers(Strict, frozen=True):
    """The user's tool servers that an agent starts: the files that name them, and what switches them off.

    `paths` are TOML files, forms like a source's path; the keys of the table `table` are the names. If there
    are any, `args` come before a run's own: in them `{servers}` is `each` of every server, with commas
    between them, and `{server}` in it the name as a string of TOML.
    """

    paths: tuple[str, ...]
    table: str
    each: str
    args: tuple[str, ...]


class Narrative(Strict, frozen=True, kw_only=True):
    """A run in which the agent writes a handoff document: headless, in a fork of its session, without tools.

    The request comes on standard input. `args` and `env` hold a launch's values: `{native_id}` is the
    session to go on from, `{leg_folder}` a private folder that lives as long as the run, with `files`
    rendered into it. `copy` is for agents without a fork that leaves nothing behind: "beside" copies the
    session's file next to it under a new id, which `{native_id}` then is, and removes the copy afterwards;
    "database" copies the agent's database to `{leg_folder}/native.db`.

    `fresh_args` are the arguments for a document that it writes from a digest instead, in a session of its
    own with the new id `{native_id}`; without them it cannot. Files of that session are removed afterwards.
    `input_has_cached` is whether the input tokens it reports include the cached ones. `escapes` replace
    strings in a digest that the agent would take for a command or a file to read. `servers` are the
    user's tool servers, of which a run has none.
    """

    args: tuple[str, ...]
    fresh_args: tuple[str, ...] = ()
    escapes: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    files: tuple[FileTemplate, ...] = ()
    servers: UserServers | None = None
    copy_by: Literal["", "beside", "database"] = field(default="", name="copy")
    limit_s: Annotated[float, Meta(gt=0, le=1800)] = 180
    input_has_cached: bool = False
    answer: Answer


class Headless(Strict, frozen=True, kw_only=True):
    """A run of the agent for one turn without a screen, in a leg of its own.

    Its words stand in for the launch's: `fresh_args` or `resume_args`, then `args`; the model's and the
    packet's are the launch's own. `env` is added to the launch's; `files`, where there are any, take the
    place of the launch's. What it is to do comes on standard input. Its standard output is
    `{leg_folder}/stream.jsonl`, one JSON object a line: the source "stream", whose `names` are as a source's,
    and whose records mean what `says` has. Its standard error is `{leg_folder}/errors.log`. `keeps` are the
    roles of those sources of the adapter that a headless leg has too, `sources` are its own. `quit` ends it.
    """

    args: tuple[str, ...] = ()
    fresh_args: tuple[str, ...] = ()
    resume_args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    files: tuple[FileTemplate, ...] = ()
    keeps: tuple[Role, ...] = ()
    sources: tuple[SourceSpec, ...] = ()
    names: dict[Literal["native_id", "transcript"], str] = field(default_factory=dict)
    says: tuple[StreamRule, ...]
    quit: tuple[QuitStep, ...]


class LaunchChange(Strict, frozen=True):
    """Keys of `Launch` that are others for some versions; those left out are the same."""

    args: tuple[str, ...] | None = None
    fresh_args: tuple[str, ...] | None = None
    resume_args: tuple[str, ...] | None = None
    model_args: tuple[str, ...] | None = None
    packet_args: tuple[str, ...] | None = None
    tool_args: tuple[str, ...] | None = None
    env: dict[str, str] | None = None
    unset: tuple[str, ...] | None = None
    files: tuple[FileTemplate, ...] | None = None
    session_flags: tuple[str, ...] | None = None


class VersionChange(VersionRange, frozen=True):
    """Differences for a range of versions: keys of `launch`, and `quit` as a whole."""

    launch: LaunchChange = LaunchChange()
    quit: tuple[QuitStep, ...] | None = None


Accepted = Literal["text", "conversation", "model", "headless"]
"""The inputs of an agent: text, its own earlier conversation, a model's name, a turn without a screen."""
Produced = Literal["edits", "commands", "document", "record"]
"""The outputs of an agent: changed files, commands it ran, a handoff document, a record that relay reads."""


_WITHOUT_EFFECT = frozenset({"letter", "terminal_reset"})
"""Settings that never had an effect; adapters of users may still have them."""


class Adapter(Strict, frozen=True, kw_only=True):
    """One agent. `sign_in` is what a person types to sign in; empty where its own screen asks for that.

    `tested_versions` are those of the program it was tried with; `package` is the name of the npm package the
    program comes in, whose own file tells the installed version. `versions` are what is different for some of
    them, later ones over earlier ones. A handoff may need any word of `capabilities`, `accepts` and
    `produces`.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,31}\Z")]
    title: str
    keys: tuple[str, ...] = ()
    sign_in_files: tuple[str, ...] = ()
    sign_in: Annotated[str, Meta(max_length=80)] = ""
    launch: Launch
    deliver: Deliver
    quit: tuple[QuitStep, ...]
    sources: tuple[SourceSpec, ...] = ()
    transcript: Transcript | None = None
    narrative: Narrative | None = None
    headless: Headless | None = None
    hooks: Hooks | None = None
    tool_extension: ToolExtension | None = None
    proxy: ProxySpec | None = None
    budget_tokens: Annotated[int, Meta(ge=500)] = 6000
    template: str = "resume.md.j2"
    tested_versions: tuple[str, ...] = ()
    package: str = ""
    versions: tuple[VersionChange, ...] = ()
    capabilities: tuple[str, ...] = ()
    accepts: tuple[Accepted, ...] = ()
    produces: tuple[Produced, ...] = ()

    @classmethod
    def parse(cls, tables: Mapping[str, object]) -> Self:
        """Return the adapter in `tables`, which may be of an earlier release. Raise MistakeError."""
        tables = {key: value for key, value in tables.items() if key not in _WITHOUT_EFFECT}
        if "tested_version" in tables:
            rest = {key: value for key, value in tables.items() if key != "tested_version"}
            tables = {"tested_versions": (tables["tested_version"],), **rest}
        return super().parse(tables)

    @property
    def newest_tested(self) -> str:
        """The newest version it was tried with; empty for none."""
        return find_newest(self.tested_versions)

    def fit(self, version: str) -> "Adapter":
        """Return the adapter as it is for this version; unchanged if the version is unknown."""
        fitted = self
        for one in self.versions:
            if version and one.contains(version):
                fitted = _change(fitted, one)
        return fitted


def _change(adapter: Adapter, change: VersionChange) -> Adapter:
    named = msgspec.structs.asdict(change.launch)
    launch = {name: value for name, value in named.items() if value is not None}
    steps = adapter.quit if change.quit is None else change.quit
    return replace(adapter, launch=replace(adapter.launch, **launch), quit=steps)
