"""Named refusals of the four providers: HTTP status, headers and body as their public records show them."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

TYPE_URL = "type.googleapis.com/google.rpc."
Refusal = tuple[int, dict[str, str], dict[str, Any]]

RESET_S = 7200
CLAIM_WINDOWS = {"five_hour": "5h", "seven_day": "7d"}


def get_refusal(name: str, given: dict[str, object]) -> Refusal:
    """The status, headers and body of the refusal `name`; reset moments count from now."""
    return REFUSALS[name](**given)


def in_future(seconds: float) -> str:
    """The epoch second `seconds` from now, as a header wants it."""
    return str(int(time.time() + seconds))


def claude_headers(*, used: float = 0.41, status: str = "allowed", **more: str) -> dict[str, str]:
    """What a subscriber's answer carries: both windows, how much of the short one is used."""
    plain = {
        "status": status,
        "representative-claim": "five_hour",
        "reset": in_future(RESET_S),
        "5h-status": status,
        "5h-utilization": str(used),
        "5h-reset": in_future(RESET_S),
        "7d-status": "allowed",
        "7d-utilization": "0.22",
        "7d-reset": in_future(400_000),
        "overage-status": "rejected",
        "overage-disabled-reason": "org_level_disabled",
    }
    named = {key.replace("_", "-"): value for key, value in more.items()}
    return {f"anthropic-ratelimit-unified-{key}": value for key, value in {**plain, **named}.items()}


def claude_limit(claim: str = "five_hour", reset_s: int = RESET_S) -> Refusal:
    """A subscription's window is used up: not retried by the agent."""
    ends = in_future(reset_s)
    headers = claude_headers(used=1.0, status="rejected", representative_claim=claim, reset=ends)
    window = CLAIM_WINDOWS.get(claim, "7d")
    headers[f"anthropic-ratelimit-unified-{window}-reset"] = ends
    headers |= {"retry-after": str(reset_s), "x-should-retry": "true"}
    said = "This request would exceed your account's rate limit. Please try again later."
    return 429, headers, claude_error("rate_limit_error", said)


def claude_error(kind: str, said: str) -> dict[str, Any]:
    """The body every refusal of this provider has."""
    return {"type": "error", "error": {"type": kind, "message": said}, "request_id": "req_011scripted"}


def claude_overloaded() -> Refusal:
    """529: the agent retries by itself."""
    return 529, {"x-should-retry": "true"}, claude_error("overloaded_error", "Overloaded")


def claude_transient(retry_after_s: int = 20) -> Refusal:
    """A subscriber's 429 without the window headers: "not your usage limit"."""
    body = claude_error("rate_limit_error", "Rate limited. Please try again later.")
    return 429, {"retry-after": str(retry_after_s)}, body


def claude_credit() -> Refusal:
    """400: the API key's prepaid credit is used up."""
    said = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
    return 400, {}, claude_error("invalid_request_error", said)


def codex_headers(*, used: int = 41, reset_s: int = RESET_S, **more: str) -> dict[str, str]:
    """What a plan's answer carries: both windows, how much of the short one is used in percent."""
    named = {key.replace("_", "-"): value for key, value in more.items()}
    return {
        "x-codex-active-limit": "codex",
        "x-codex-primary-used-percent": str(used),
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": in_future(reset_s),
        "x-codex-secondary-used-percent": "22",
        "x-codex-secondary-window-minutes": "10080",
        "x-codex-secondary-reset-at": in_future(300_000),
        **named,
    }


def codex_limit(plan: str = "plus", reset_s: int = RESET_S) -> Refusal:
    """The plan's window is used up: not retried by the agent."""
    body = {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": plan,
        "resets_at": int(in_future(reset_s)),
        "resets_in_seconds": reset_s,
    }
    return 429, codex_headers(used=100, reset_s=reset_s), {"error": body}


def server_error(status: int = 500) -> Refusal:
    """A plain server failure, which every agent retries."""
    return status, {}, {"error": {"message": "The server had an error.", "type": "server_error"}}


def openai_busy(retry_after_s: int | None = 20) -> Refusal:
    """Requests per minute are used up; `retry_after_s` of hours makes the silent wait."""
    said = (
        "Rate limit reached for gpt-5.1 in organization org-scripted on requests per min (RPM): "
        f"Limit 500, Used 500, Requested 1. Please try again in {retry_after_s}s."
    )
    headers = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}
    body = {"message": said, "type": "requests", "param": None, "code": "rate_limit_exceeded"}
    return 429, headers, {"error": body}


def openai_quota() -> Refusal:
    """The account has no money left."""
    said = "You exceeded your current quota, please check your plan and billing details."
    body = {"message": said, "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}
    return 429, {}, {"error": body}


def openai_unpaid() -> Refusal:
    """402: a gateway's prepaid credit is used up; no agent retries it."""
    return 402, {}, {"error": {"message": "Insufficient credits. Add more to go on.", "code": 402}}


def zen_free(retry_after_s: int = 19_014) -> Refusal:
    """The free tier of opencode's own gateway is used up."""
    body = {"type": "FreeUsageLimitError", "message": "Rate limit exceeded. Please try again later."}
    return 429, {"retry-after": str(retry_after_s)}, {"type": "error", "error": body}


def google_error(code: int, status: str, said: str, *details: dict[str, Any]) -> Refusal:
    """A Google API error with typed details."""
    error: dict[str, Any] = {"code": code, "message": said, "status": status}
    if details:
        error["details"] = list(details)
    return code, {}, {"error": error}


def gemini_quota(per: str = "Day", delay_s: float = 38.2) -> Refusal:
    """The free tier's requests per day (a dialog) or per minute (retried) are used up."""
    metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
    said = (
        "You exceeded your current quota, please check your plan and billing details. \n* Quota exceeded "
        f"for metric: {metric}, limit: 250, model: gemini-2.5-pro\nPlease retry in {delay_s}s."
    )
    quota_id = f"GenerateRequestsPer{per}PerProjectPerModel-FreeTier"
    violation = {"quotaMetric": metric, "quotaId": quota_id, "quotaValue": "250"}
    failure = {"@type": TYPE_URL + "QuotaFailure", "violations": [violation]}
    retry = {"@type": TYPE_URL + "RetryInfo", "retryDelay": f"{int(delay_s)}s"}
    return google_error(429, "RESOURCE_EXHAUSTED", said, failure, retry)


def render_duration(seconds: float) -> str:
    """Seconds as `7h23m19s`."""
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{left}s"


def gemini_exhausted(reset_s: float = 26_599.1) -> Refusal:
    """The Google login's capacity is used up: the agent sleeps `reset_s` and shows nothing."""
    ends = datetime.fromtimestamp(time.time() + reset_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    wait = render_duration(reset_s)
    said = f"You have exhausted your capacity on this model. Your quota will reset after {wait}."
    facts = {"uiMessage": "true", "quotaResetDelay": wait, "quotaResetTimeStamp": ends}
    info = {
        "@type": TYPE_URL + "ErrorInfo",
        "reason": "QUOTA_EXHAUSTED",
        "domain": "cloudcode-pa.googleapis.com",
        "metadata": facts,
    }
    retry = {"@type": TYPE_URL + "RetryInfo", "retryDelay": f"{reset_s}s"}
    return google_error(429, "RESOURCE_EXHAUSTED", said, info, retry)


def gemini_overloaded() -> Refusal:
    """503: the agent retries by itself, for ever."""
    return google_error(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")


REFUSALS: dict[str, Callable[..., Refusal]] = {
    "claude-limit": claude_limit,
    "claude-overloaded": claude_overloaded,
    "claude-transient": claude_transient,
    "claude-credit": claude_credit,
    "codex-limit": codex_limit,
    "openai-busy": openai_busy,
    "openai-quota": openai_quota,
    "openai-unpaid": openai_unpaid,
    "zen-free": zen_free,
    "gemini-quota": gemini_quota,
    "gemini-exhausted": gemini_exhausted,
    "gemini-overloaded": gemini_overloaded,
    "server-error": server_error,
}
