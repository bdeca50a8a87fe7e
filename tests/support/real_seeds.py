"""What a signed-in user's HOME holds for each agent: trust, onboarding, a fake login, a fake model.

The tokens are made up and the addresses are on loopback; the shapes are what the pinned versions ask
for before they show a prompt instead of a dialog.
"""

import json
import os
import time
from typing import Any

CLAUDE_TOKEN = "sk-ant-oat01-fake-" + "0" * 56 + "-AAAAAAAA"
FAR_S = 8 * 3600


def write_json(path: str, value: object) -> None:
    """Write `value` to `path`, making its folders."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)


def seed_claude(home: str, project: str) -> None:
    """A subscriber who trusts `project`: only a subscriber meets the limits of a plan."""
    account = {"accountUuid": "00000000-0000-4000-8000-000000000001", "emailAddress": "dev@example.com"}
    account |= {"organizationUuid": "00000000-0000-4000-8000-000000000002", "organizationRole": "admin"}
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}
    onboarded = {"hasCompletedOnboarding": True, "lastOnboardingVersion": "2.1.197", "theme": "dark"}
    known = {"numStartups": 7, "oauthAccount": account, "projects": {project: trusted}}
    write_json(f"{home}/.claude.json", onboarded | known)
    login = {
        "accessToken": CLAUDE_TOKEN,
        "refreshToken": "sk-ant-ort01-fake-000",
        "expiresAt": int((time.time() + FAR_S) * 1000),
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
        "rateLimitTier": "default_claude_max_5x",
    }
    write_json(f"{home}/.claude/.credentials.json", {"claudeAiOauth": login})


def seed_codex(home: str, project: str, address: str) -> None:
    """A user of a custom provider: it gives the plan's limit without a login or TLS."""
    lines = [
        'model = "gpt-5.5"',
        'model_provider = "scripted"',
        "check_for_update_on_startup = false",
        "[model_providers.scripted]",
        'name = "Scripted"',
        f'base_url = "{address}/codex/v1"',
        'wire_api = "responses"',
        'env_key = "OPENAI_API_KEY"',
        f"[projects.{json.dumps(project)}]",
        'trust_level = "trusted"',
        "[analytics]",
        "enabled = false",
        "[notice.model_migrations]",
        '"gpt-5.5" = "gpt-6-sol"',
        "[tui.model_availability_nux]",
        '"gpt-6.1-sol" = 1',
    ]
    os.makedirs(f"{home}/.codex", exist_ok=True)
    with open(f"{home}/.codex/config.toml", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def seed_gemini(home: str, project: str, *, google_login: bool) -> None:
    """A user with an API key, or with a Google login: only the latter meets the silent limit."""
    kind = "oauth-personal" if google_login else "gemini-api-key"
    settings = {
        "security": {"auth": {"selectedType": kind}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    write_json(f"{home}/.gemini/settings.json", settings)
    write_json(f"{home}/.gemini/trustedFolders.json", {project: "TRUST_FOLDER"})


def seed_opencode(home: str, address: str) -> None:
    """A user of an OpenAI-compatible provider with two models."""
    size = {"limit": {"context": 200_000, "output": 32_000}, "tool_call": True}
    models = {"large": {"name": "Large", **size}, "small": {"name": "Small", **size}}
    options = {"baseURL": f"{address}/opencode/v1", "apiKey": "fake-opencode-key"}
    scripted: dict[str, Any] = {"npm": "@ai-sdk/openai-compatible", "name": "Scripted"}
    settings = {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/large",
        "small_model": "scripted/small",
        "provider": {"scripted": {**scripted, "options": options, "models": models}},
    }
    write_json(f"{home}/.config/opencode/opencode.json", settings)
    # The list of all providers' models, which takes it eight seconds of a processor at every start.
    write_json(f"{home}/.cache/opencode/models.json", {})
    # Without its own package it would ask a registry for it at every start, for 20 seconds of a processor.
    folder, package = f"{home}/.config/opencode", {"dependencies": {"@opencode-ai/plugin": "1.18.33"}}
    os.makedirs(f"{folder}/node_modules")
    write_json(f"{folder}/package.json", package)
    write_json(f"{folder}/package-lock.json", {"lockfileVersion": 3, "packages": {"": package}})


def free_hands(home: str) -> None:
    """Let every agent edit and run commands without asking, by its user's own settings."""
    allowed = ["Bash", "Edit", "Read", "Write"]
    write_json(f"{home}/.claude/settings.json", {"permissions": {"allow": allowed}})
    with open(f"{home}/.codex/config.toml", encoding="utf-8") as file:
        config = file.read()
    with open(f"{home}/.codex/config.toml", "w", encoding="utf-8") as file:
        file.write('approval_policy = "never"\nsandbox_mode = "danger-full-access"\n' + config)
    with open(f"{home}/.gemini/settings.json", encoding="utf-8") as file:
        settings = json.load(file)
    settings["tools"] = {"allowed": ["run_shell_command", "replace"]}
    write_json(f"{home}/.gemini/settings.json", settings)


def build_env(address: str, *, google_login: bool) -> dict[str, str]:
    """The variables that lead every agent to `address`, with fake keys."""
    env = {
        "ANTHROPIC_BASE_URL": f"{address}/claude",
        "OPENAI_API_KEY": "sk-fake-openai-0000",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
    }
    if google_login:
        env |= {"GOOGLE_GENAI_USE_GCA": "true", "GOOGLE_CLOUD_ACCESS_TOKEN": "fake-google-token"}
        return env | {"CODE_ASSIST_ENDPOINT": f"{address}/gemini"}
    return env | {"GEMINI_API_KEY": "fake-gemini-key", "GOOGLE_GEMINI_BASE_URL": f"{address}/gemini"}
