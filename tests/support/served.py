"""What the provider of a world served, in tokens, beside what `agent-relay metrics` says was used."""

import json

from tests.support.provider import anthropic, google, openai
from tests.support.provider.steps import Step
from tests.support.real import World

Counts = tuple[int, int, int, int]
"""New input, cached input, input written to the cache, output."""


def count_served(world: World, agent: str) -> Counts:
    """The usage of every answer the provider gave in the agent's conversations; refusals have none."""
    served = [_count(row["path"], row["step"]) for row in world.requests(agent) if "error" not in row["step"]]
    one, two, three, four = (sum(column) for column in zip(*served, strict=True))
    return one, two, three, four


def _count(path: str, step: Step) -> Counts:
    """One answer's, by its wire, as the wire's documentation says what is part of what."""
    if path.endswith("/messages"):
        told = anthropic.count_usage(step)
        cached, written = told["cache_read_input_tokens"], told["cache_creation_input_tokens"]
        return told["input_tokens"], cached, written, told["output_tokens"]
    if path.endswith("/responses"):
        told = openai.count_usage(step)
        cached = told["input_tokens_details"]["cached_tokens"]
        return told["input_tokens"] - cached, cached, 0, told["output_tokens"]
    if path.endswith("/completions"):
        told = openai.count_chat_usage(step)
        return told["prompt_tokens"], 0, 0, told["completion_tokens"]
    told = google.count_usage(step)
    cached = told["cachedContentTokenCount"]
    output = told["candidatesTokenCount"] + told["thoughtsTokenCount"]
    return told["promptTokenCount"] - cached, cached, 0, output


def read_used(world: World, *words: str) -> dict[str, Counts]:
    """The tokens of each row of `agent-relay metrics`, the total's under `total`."""
    done = world.run(world.relay("metrics", *words, "--json"))
    assert done.returncode == 0, done.stderr
    view = json.loads(done.stdout)
    assert (view["problems"], view["skipped_lines"]) == ([], 0)
    names = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")
    found = {}
    for row in (*view["rows"], {**view["total"], "key": "total"}):
        one, two, three, four = (row[name] for name in names)
        found[row["key"]] = (one, two, three, four)
    return found
