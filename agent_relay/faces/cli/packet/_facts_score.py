"""`agent-relay packet verify --facts`: score how many planted facts a packet keeps."""

import os

from pydantic import ValidationError

from agent_relay.domain.errors import ConfigurationError, ExitCode, RelayError, WrongUseError
from agent_relay.faces.render.output import print_json, print_lines
from agent_relay.packet.score import Planting, Score, score_text
from agent_relay.system.config.toml_document import parse_toml
from agent_relay.system.disk.files import read_bounded

_LIMIT_BYTES = 4 << 20
_FORM = "A [[fact]] has a kind and says = [words that must be kept]; see tests/corpus."


def print_facts_score(facts: str, *, transcript: str, text: str, target: str, as_json: bool) -> int:
    """Print the score of a packet against the file `facts`; return exit status 0 if it is perfect, else 1.

    The packet is the file `text` (what a target reads) if given. Else it is built from `transcript`, or from
    the one the file names, for `target`, or for the transcript's own agent. Raises RelayError.
    """
    planting = read_planting(facts)
    path = transcript or os.path.join(os.path.dirname(facts) or ".", planting.transcript)
    score = score_text(_read(text) if text else _build(planting, path, target), planting)
    if as_json:
        print_json(describe(score))
    else:
        print_lines(*render(score))
    return ExitCode.DONE if score.is_perfect else ExitCode.FAILED


def read_planting(path: str) -> Planting:
    """Return the planted facts in the file `path`; raise RelayError if it cannot be read or has none."""
    try:
        return Planting.model_validate(parse_toml(_read(path), path))
    except ConfigurationError as problem:
        raise WrongUseError(problem.sentence, hint=_FORM) from None
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise WrongUseError(f"{path} holds no planted facts: {where}: {first['msg']}", hint=_FORM) from None


def describe(score: Score) -> dict[str, object]:
    """Return the score as JSON values."""
    return {
        "kinds_found": score.kinds,
        "kinds_planted": len(score.planted),
        "recall": {
            kind: {"found": score.found[kind], "planted": score.planted[kind]} for kind in score.planted
        },
        "missing": [{"kind": fact.kind, "says": list(fact.says)} for fact in score.missing],
        "secrets_found": len(score.leaked),
        "secrets_planted": score.secrets,
        "leaked": list(score.leaked),
        "characters": score.characters,
    }


def render(score: Score) -> list[str]:
    """Return the score as lines for people."""
    lines = [f"{kind:<12}{score.found[kind]}/{score.planted[kind]}" for kind in score.planted]
    lines.append(f"{'kinds':<12}{score.kinds}/{len(score.planted)}")
    lines.append(f"{'secrets':<12}{len(score.leaked)} of {score.secrets} found")
    lines.append(f"{'characters':<12}{score.characters}")
    lines += [f"missing {fact.kind}: {' … '.join(fact.says)}" for fact in score.missing]
    return [*lines, *(f"leaked: {kind}" for kind in score.leaked)]


def _build(planting: Planting, transcript: str, target: str) -> str:
    if not planting.agent or os.path.isdir(transcript):
        lacks = "transcript" if planting.agent else "agent"
        raise WrongUseError(
            f"the file of facts names no {lacks}", hint='Add agent = "…" and transcript = "…".'
        )
    from agent_relay.faces.cli.packet._build import build_offline

    return build_offline(planting.agent, transcript, target or planting.agent)[1]


def _read(path: str) -> str:
    try:
        return read_bounded(path, limit_bytes=_LIMIT_BYTES).decode("utf-8", "replace")
    except FileNotFoundError as error:
        raise WrongUseError(f"cannot read {path}: {error.strerror}") from error
    except RelayError as error:
        raise WrongUseError(error.sentence) from error
