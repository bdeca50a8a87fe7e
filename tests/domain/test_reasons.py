"""Reasons others gave, as people read them."""

import pytest

from agent_relay.domain.text.plain import find_reason, quote_reason

LOGGED = (
    '2026-11-20T18:20:00.123Z level=ERROR message="stream error" providerID=a small=false'
    ' error.error="AI_APICallError: Rate limit reached for gpt-5.1. Please try again in 3600s."'
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("You've hit your session limit · resets 9pm", "You've hit your session limit · resets 9pm"),
        (
            LOGGED,
            "Rate limit reached for gpt-5.1. Please try again in 3600s.",
        ),
        (
            'message="stream error" small=false error.error="AI_APICallError: Rate limit reached. Try ag',
            "Rate limit reached. Try ag",
        ),
        (
            "2026-11-20T18:20:00.123456Z ERROR core::session::turn: unexpected status 401 Unauthorized",
            "unexpected status 401 Unauthorized",
        ),
        ("[2026-11-20 18:20:00] [ERROR] no such model", "no such model"),
        (
            'API Error: 401 {"type":"error","error":{"type":"auth","message":"invalid x-api-key"}}',
            "API Error: 401: invalid x-api-key",
        ),
        (
            r'{"error":{"message":"{\n  \"error\": {\"code\": 429, \"message\": \"You exceeded it.\"}}"}}',
            "You exceeded it.",
        ),
        ('{"reason":"QUOTA_EXHAUSTED","domain":"example.com"}', "quota exhausted"),
        ('[{"error":{"code":400,"message":"API key not valid."}}]', "API key not valid."),
        ("[API Error: You exceeded your current quota.]", "API Error: You exceeded your current quota."),
        ("TerminalQuotaError: You have exhausted your capacity", "You have exhausted your capacity"),
        ("KeyError: 'x'", "KeyError: 'x'"),
        ("Say {name} or [name]", "Say {name} or [name]"),
        ("set a=b and try again", "set a=b and try again"),
        ("", ""),
        (
            '{"error":{"message":"\\u001b[2Jtoo \\u001b[31mmany\\u001b[0m\\u0007 requests"}}',
            "too many requests",
        ),
    ],
)
def test_a_reason_is_what_a_person_would_have_said(text: str, said: str) -> None:
    """A line of somebody's log tells its reader to go and find out what it means."""
    assert quote_reason(text) == said
    assert quote_reason(said) == said


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ("Warning: colours\n\x1b[31mno such model\x1b[0m\n\n", "no such model"),
        (
            "Error: the model was not found\n    at run (file:///x.js:1:2)\n    at y\n\nNode.js v22.1.0\n",
            "the model was not found",
        ),
        (
            'warned\n{\n  "id": 1,\n  "error": {\n    "message": "You have exhausted it."\n  }\n}\n',
            "You have exhausted it.",
        ),
        ("{\n}\n", ""),
        (" \n", ""),
        ("", ""),
    ],
)
def test_why_a_program_failed_is_no_brace_and_no_stack(errors: str, said: str) -> None:
    """The last line of a pretty-printed error is a brace, that of a crash the runtime's version."""
    assert find_reason(errors) == said


@pytest.mark.parametrize(
    "piece", ['{"', '"message":"', "\\", "a=b ", 'a="', "x::", "[", " at ", "{\n", "Error: "]
)
def test_a_reason_of_any_length_is_found_at_once(piece: str) -> None:
    """What an agent says is as long as it likes."""
    assert len(quote_reason(piece * 20_000)) <= 301
    assert len(find_reason(piece * 20_000)) <= 301
