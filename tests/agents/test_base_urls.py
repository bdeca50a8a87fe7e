"""How an agent is pointed at the proxy, and what of the user's own settings counts."""

import json
import os

import pytest

from agent_relay.agents.base_urls import ProxiedLaunch, plan_proxied_launch, restore_base_urls
from agent_relay.store.proxied_legs import parse_target
from tests.support.real_launch import get_adapter

LEG = "01JD0000000000000000000PXY"


def plan(agent: str, home: object, environ: dict[str, str] | None = None) -> ProxiedLaunch:
    """What is planned for a leg of `agent`, whose user's home is `home`."""
    spec = get_adapter(agent).adapter.proxy
    assert spec is not None
    values = {"home": str(home), "cwd": f"{home}/project"}
    found = plan_proxied_launch(spec, values, environ or {}, port=4711, leg_id=LEG)
    assert found is not None
    return found


def write(path: str, text: str) -> None:
    """A file of the user's, with its folder."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def list_upstreams(found: ProxiedLaunch) -> list[list[str]]:
    """Each route's upstreams."""
    return [[one.url for one in route.upstreams] for route in found.leg.routes]


def test_a_variable_leads_to_the_proxy_and_its_provider_is_the_upstream(tmp_path: object) -> None:
    """Nothing was set: the agent's own provider it is, and the agent is told so."""
    found = plan("claude", tmp_path)
    env = found.change({"HOME": "/home/dev"})
    assert list_upstreams(found) == [["https://api.anthropic.com"]]
    assert env["ANTHROPIC_BASE_URL"] == f"http://127.0.0.1:4711/{LEG}.{found.leg.secret}/0"
    assert env["_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"] == "1"


def test_a_base_url_of_the_users_own_becomes_the_upstream(tmp_path: object) -> None:
    """Who uses a gateway goes on using it, with its path, and the agent is told nothing untrue."""
    environ = {"ANTHROPIC_BASE_URL": "https://gateway.example.com:8443/claude/"}
    found = plan("claude", tmp_path, environ)
    env = found.change(environ)
    assert list_upstreams(found) == [["https://gateway.example.com:8443/claude"]]
    assert env["ANTHROPIC_BASE_URL"].endswith("/0/claude")
    assert "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL" not in env


@pytest.mark.parametrize(
    "url", ["", "gateway", "ftp://a", "https://me:word@a", "https://a/?k=1", "http://[", "http://a:x"]
)
def test_what_cannot_be_an_upstream_is_left_to_the_agent(tmp_path: object, url: str) -> None:
    """The agent says itself what is wrong with it, or uses it directly; the default is for nothing at all."""
    spec = get_adapter("claude").adapter.proxy
    assert spec is not None
    environ = {"ANTHROPIC_BASE_URL": url}
    found = plan_proxied_launch(spec, {"home": str(tmp_path)}, environ, port=4711, leg_id=LEG)
    assert (found is None) == bool(url)


def test_every_provider_of_a_configuration_has_a_route(tmp_path: object) -> None:
    """Which one is used, a profile or an option may say: all of them pass through."""
    write(
        f"{tmp_path}/.codex/config.toml",
        'openai_base_url = "https://eu.example.com/v1"\n[model_providers.local]\nbase_url = "http://127.0.0.1:11434/v1"\n'
        '[model_providers."a.b"]\nbase_url = "https://dots.example.com"\n',
    )
    found = plan("codex", tmp_path)
    base = f"http://127.0.0.1:4711/{LEG}.{found.leg.secret}"
    assert list_upstreams(found) == [["https://eu.example.com/v1"], ["http://127.0.0.1:11434/v1"]]
    assert found.args == (
        *("-c", f'openai_base_url="{base}/0/v1"'),
        *("-c", f'model_providers.local.base_url="{base}/1/v1"'),
    )


def test_signed_in_another_way_another_provider_is_asked(tmp_path: object) -> None:
    """Codex asks ChatGPT instead of OpenAI with an account of that; its requests tell."""
    found = plan("codex", tmp_path)
    assert [(one.header, one.url) for one in found.leg.routes[0].upstreams] == [
        ("chatgpt-account-id", "https://chatgpt.com/backend-api/codex"),
        ("", "https://api.openai.com/v1"),
    ]


def test_a_configuration_with_comments_is_read_and_added_to(tmp_path: object) -> None:
    """What the user hands to their agent by the same variable stays in it."""
    write(
        f"{tmp_path}/.config/opencode/opencode.jsonc",
        '{ // mine\n "provider": {"mine": {"options": {"baseURL": "https://a.example.com/v1", /* */ }}, }, }',
    )
    environ = {"OPENCODE_CONFIG_CONTENT": '{"mcp": {"one": {}}, "provider": {"mine": {"name": "M"}}}'}
    found = plan("opencode", tmp_path, environ)
    told = json.loads(found.change(environ)["OPENCODE_CONFIG_CONTENT"])
    base = f"http://127.0.0.1:4711/{LEG}.{found.leg.secret}/2/v1"
    assert told == {"mcp": {"one": {}}, "provider": {"mine": {"name": "M", "options": {"baseURL": base}}}}


@pytest.mark.parametrize("text", ["{", "[]", '{"security": {}}', "\x00", '{"security": 1}'])
def test_an_agent_that_would_sign_in_another_way_is_left_alone(tmp_path: object, text: str) -> None:
    """To Gemini CLI a base URL is a choice of how to sign in, where the user made none."""
    write(f"{tmp_path}/.gemini/settings.json", text)
    assert list_upstreams(plan("gemini", tmp_path)) == [["https://cloudcode-pa.googleapis.com"]]
    write(f"{tmp_path}/.gemini/settings.json", '{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    assert list_upstreams(plan("gemini", tmp_path))[0] == ["https://generativelanguage.googleapis.com"]


def test_requests_to_this_machine_are_kept_from_the_users_proxy(tmp_path: object) -> None:
    """A company's proxy cannot reach 127.0.0.1 here, and must not be told the secret."""
    environ = {"HTTPS_PROXY": "http://p:1", "no_proxy": "intranet"}
    found = plan("claude", tmp_path, environ)
    env = found.change(environ)
    assert (env["NO_PROXY"], env["no_proxy"]) == ("127.0.0.1", "intranet,127.0.0.1")
    assert found.leg.environ == environ


def test_who_is_started_from_within_an_agent_finds_what_the_user_set(tmp_path: object) -> None:
    """Another leg must not go through this one's address, which ends with it."""
    before = {"ANTHROPIC_BASE_URL": "https://gateway.example.com", "PATH": "/bin"}
    within = plan("claude", tmp_path, before).change(before)
    assert "127.0.0.1" in within["ANTHROPIC_BASE_URL"]
    restored = restore_base_urls(within)
    assert {name: restored[name] for name in before} == before
    chosen = restore_base_urls({**within, "ANTHROPIC_BASE_URL": "https://other.example.com"})
    assert chosen["ANTHROPIC_BASE_URL"] == "https://other.example.com"
    unset = restore_base_urls(plan("claude", tmp_path).change({"PATH": "/bin"}))
    assert "ANTHROPIC_BASE_URL" not in unset


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (f"/{LEG}.s3cret/0/v1/messages?a=b", (LEG, "s3cret", 0, "/v1/messages?a=b")),
        (f"/{LEG}.s/1", (LEG, "s", 1, "")),
        (f"/{LEG}.s/1?a=/b", (LEG, "s", 1, "?a=/b")),
        (f"/{LEG}/0/v1", None),
        (f"/{LEG}./0/v1", None),
        (f"/{LEG}.s/x/v1", None),
        (f"/{LEG}.s/10/v1", None),
        ("/../../etc/passwd", None),
        ("*", None),
        ("", None),
    ],
)
def test_an_address_is_told_from_any_other(target: str, found: object) -> None:
    """The path is what strangers send, too."""
    assert parse_target(target) == found
