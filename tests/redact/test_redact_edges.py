"""Where a rule ends: what stands right beside a secret, and what only nearly is one."""

from agent_relay.redact._named_values import looks_secret
from agent_relay.redact.text import redact_text

KEY = "Zk3jd9sLq2mN8vB4xT6yPq1wR5tY7uI0oA1sD2fG3hJ4kL5zX6cV7bN8mQ9"


def test_what_is_nearly_a_secret_stays() -> None:
    """A packet full of holes is as useless as one full of keys is dangerous."""
    rows = [
        f"desk-proj-{KEY[:20]}\n{KEY[20:40]}",  # the end of a word is no beginning of a key
        f"npm_{KEY[:20]}\n{KEY[20:45]} x",  # longer than its kind can be
        f'token \n"{KEY[:24]}"',  # a word at a line's end and a string in the next line
        f"M{KEY[:25]}.{KEY[:6]}.{KEY[:27]}",  # its first part is no account in base64
        f"M{KEY[:24]}.{KEY[:6]}.{KEY[:27]}",  # cannot be base64 at all
        "the key ends with -----END RSA PRIVATE KEY-----",
        "Private-Lines: 2\nshort\n",
        "Private-Lines: several\n",
    ]
    assert [text for text in rows if redact_text(text).text != text] == []


def test_letters_that_grow_in_lower_case_shift_nothing() -> None:
    """Places are found in a lower-case copy: one letter more there would cut beside the secret."""
    assert redact_text(f'İİ password = "{KEY[:20]}"!').text == 'İİ password = "[redacted: password]"!'


def test_a_path_is_no_secret_but_a_generated_one_is() -> None:
    """Settings name files; some services make paths of keys."""
    assert not looks_secret("/run/x9Kq2m/db", least=8)
    assert looks_secret(f"/{KEY[:40]}", least=8)


def test_a_secret_behind_many_variables_in_one_quoted_value_is_found() -> None:
    """A whole script stands in a setting; none of its names before the last one has a value of its own."""
    exports = "".join(f"export SVC{at}_TOKEN=$SVC{at}_TOKEN " for at in range(14))
    text = (
        f'APP_SECRET="{exports}and then please start it with care export DB_PASSWORD={"Tr0ub4dor" + "3xQz9"}"'
    )
    assert "3xQz9" not in redact_text(text).text
