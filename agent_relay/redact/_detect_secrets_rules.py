"""Adopt detect-secrets' detectors as line rules: its patterns, without its files, filters and network."""

import re
from base64 import b64decode
from binascii import Error as NotBase64Error
from collections.abc import Iterator

from detect_secrets.plugins.artifactory import ArtifactoryDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.cloudant import CloudantDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector

from agent_relay.redact.rules import LineRule, SecretSpan, is_varied

# A detector's class, our kind, and literals of which one stands in every line worth looking at. Where a
# pattern has no literal of its own, the words its provider's users write beside it serve.
_ADOPTED = (
    (ArtifactoryDetector, "artifactory-token", ("artifactory", "jfrog", "akc")),
    (AzureStorageKeyDetector, "azure-key", ("accountkey=",)),
    (CloudantDetector, "cloudant-key", ("cloudant",)),
    (GitHubTokenDetector, "github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    (GitLabTokenDetector, "gitlab-token", ("gl", "gr1348941")),
    (IbmCloudIamDetector, "ibm-key", ("ibm", "bluemix", "iam_", "iam-")),
    (IbmCosHmacDetector, "ibm-key", ("secret_access_key", "secret-access-key", "ibm", "cos_")),
    (MailchimpDetector, "mailchimp-key", ("-us",)),
    (NpmDetector, "npm-token", (":_authtoken=",)),
    (OpenAIDetector, "openai-key", ("t3blbkfj",)),
    (PypiTokenDetector, "pypi-token", ("pypi-ag",)),
    (SendGridDetector, "sendgrid-key", ("sg.",)),
    (SlackDetector, "slack-token", ("xox", "hooks.slack.com")),
    (SoftlayerDetector, "softlayer-key", ("softlayer",)),
    (SquareOAuthDetector, "square-token", ("sq0csp-",)),
    (StripeDetector, "stripe-key", ("_live_",)),
)
# The one for AWS is not among them: without edges it fires inside any long line of base64.

_ENDLESS = re.compile(r"( |\\s|\.|\[A-Za-z0-9-_\])([*+])")
_COUNTED = {(True, "*"): "{0,20}", (True, "+"): "{1,20}", (False, "*"): "{0,200}", (False, "+"): "{1,200}"}


def _is_telegram_token(found: str) -> bool:
    account, _, secret = found.partition(":")
    return account.isdigit() and is_varied(secret)


def _is_discord_token(found: str) -> bool:
    """Return whether the first part is the account's number in base64."""
    head = found.partition(".")[0]
    try:
        return b64decode(head + "=" * (-len(head) % 4), altchars=b"-_").isdigit()
    except (ValueError, NotBase64Error):
        return False


# These begin with nothing a search could go by and would fire inside longer words. They are looked for
# by the punctuation they must hold, and judged with each of the lengths their first part can have.
_BY_PUNCTUATION = (
    (
        TelegramBotTokenDetector,
        "telegram-token",
        re.compile(r"(?::|%3A)[\w-]{35}(?![\w-])", re.ASCII),
        (10, 9, 8),
        _is_telegram_token,
    ),
    (
        DiscordBotTokenDetector,
        "discord-token",
        re.compile(r"\.[\w-]{6}\.[\w-]{27,40}(?![\w-])", re.ASCII),
        (26, 25, 24),
        _is_discord_token,
    ),
)
# The same two over line ends: of fixed length there, because what follows may be the next line's word.
FOLDING = (
    LineRule("telegram-token", ":aa", re.compile(r"(?<![0-9])[0-9]{8,10}:AA[\w-]{33}", re.ASCII), is_varied),
    LineRule(
        "discord-token",
        ".",
        re.compile(r"[MNO][\w-]{23,25}\.[\w-]{6}\.(?:[\w-]{38}|[\w-]{27})", re.ASCII),
        _is_discord_token,
    ),
)


def build_line_rules() -> tuple[LineRule, ...]:
    """Build the adopted detectors as rules, one for every pattern and literal."""
    return tuple(
        LineRule(kind, hint, _bound(pattern), is_varied)
        for detector, kind, hints in _ADOPTED
        for pattern in detector.denylist
        for hint in hints
    )


def _bound(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """Limit every endless repetition in `pattern`: a row of them reads a long run again and again."""

    def count(part: re.Match[str]) -> str:
        return part[1] + _COUNTED[part[1] in (" ", r"\s"), part[2]]

    return re.compile(_ENDLESS.sub(count, pattern.pattern), pattern.flags)


def find_by_punctuation(text: str, *, rank: int) -> Iterator[SecretSpan]:
    """Yield tokens without a literal beginning: Telegram's and Discord's."""
    for detector, kind, pattern, lengths, is_plausible in _BY_PUNCTUATION:
        for match in pattern.finditer(text):
            for length in lengths:
                start = match.start() - length
                if start < 0:
                    continue
                found = text[start : match.end()].replace("%3A", ":")
                if any(rule.match(found) for rule in detector.denylist) and is_plausible(found):
                    yield SecretSpan(start, match.end(), kind, rank)
                    break
