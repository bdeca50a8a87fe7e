"""Secrets that have no prefix and no telling name of their own, and what looks like them."""

from base64 import b64encode

import pytest

from agent_relay.redact.text import redact_text

_KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "".join(f"MIIEowIBAAKCAQEA7bq1Zx9Yw3Kk0p5Jm2Vn8Rt4Lq6Ds{line}AbCdEfGhIjKl\n" for line in range(20))
    + "-----END RSA PRIVATE KEY-----\n"
)
_CERTIFICATE = _KEY.replace("RSA PRIVATE KEY", "CERTIFICATE")
_ENCODED = b64encode(_KEY.encode()).decode()
_WRAPPED = "\n".join(_ENCODED[at : at + 76] for at in range(0, len(_ENCODED), 76))
_HEX = "9f86d081884c7d659a2feaa0c55ad015"
_GUID = "3c9f1a52-7d4e-4b8a-9f61-2e5d8c7b6a90"
_BCRYPT = "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW"
_SHA512 = "KqJWpanXZHKq2BOB43TSaYhEWsQ1Lr5QNyPCDH/Tp.6u0PGYvA4e5kZKU4Ml0tD7tLb4Hyz1K1yTN9CwDRrVy."


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (f"KEY_B64={_ENCODED}", "KEY_B64=[redacted: private-key]"),
        (f"tls.key: {_ENCODED}\nmode: x", "tls.key: [redacted: private-key]\nmode: x"),
        (f'{{"a":"{_ENCODED}","b":1}}', '{"a":"[redacted: private-key]","b":1}'),
        (f"{_WRAPPED}\nand so on", "[redacted: private-key]\nand so on"),
        ("passphrase: correct horse battery staple\nx", "passphrase: [redacted: password]\nx"),
        ("GPG_PASSPHRASE='otter lamp window seven brick'", "GPG_PASSPHRASE='[redacted: password]'"),
        ('password: "correct horse battery staple"', 'password: "[redacted: password]"'),
        ("echo hunter2 | sudo -S apt install jq", "echo [redacted: password] | sudo -S apt install jq"),
        ("echo 'hunter 2!' | sudo -kS ls", "echo '[redacted: password]' | sudo -kS ls"),
        ("printf '%s\\n' hunter2 | sudo -S ls", "printf '%s\\n' [redacted: password] | sudo -S ls"),
        ("sudo -S ls <<< hunter2", "sudo -S ls <<< [redacted: password]"),
        (f"admin:{_BCRYPT}", "admin:[redacted: password-hash]"),
        (f"root:$6$rounds=5000$usesomesilly${_SHA512}:19000:0", "root:[redacted: password-hash]:19000:0"),
        (
            "$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQxMjM0$RdescudvJCsgt3ub+b4dWRWJTmaaJObG8Yk0pQ2zZk8",
            "[redacted: password-hash]",
        ),
        (f"my api key is {_HEX}", "my api key is [redacted: api-key]"),
        (f"the Datadog key {_HEX}", "the Datadog key [redacted: api-key]"),
        (f"key={_HEX}", "key=[redacted: api-key]"),
        ("PASSWORT=Tulpe2291", "PASSWORT=[redacted: password]"),
        ("DB_SENHA=gatinho2291", "DB_SENHA=[redacted: password]"),
        ("MOT_DE_PASSE=chaton2291", "MOT_DE_PASSE=[redacted: password]"),
        ("MDP=chaton2291", "MDP=[redacted: password]"),
        ("CLAVE=gatito2291", "CLAVE=[redacted: password]"),
        ("APPKEY=Zk81nQp20sLw77", "APPKEY=[redacted: secret]"),
        ("AppKey: Zk81nQp20sLw77", "AppKey: [redacted: secret]"),
        (f"X=InstrumentationKey={_GUID};Endpoint=x", "X=InstrumentationKey=[redacted: secret];Endpoint=x"),
        (f'"instrumentationKey": "{_GUID}"', '"instrumentationKey": "[redacted: secret]"'),
        (
            "DJANGO_SECRET_KEY='django-insecure-x8$kf92jd!ms0ql#vb7zp@3n'",
            "DJANGO_SECRET_KEY='[redacted: secret]'",
        ),
        ("DJANGO_SECRET_KEY=x8$kf92jd!ms0ql&vb7zp", "DJANGO_SECRET_KEY=[redacted: secret]"),
        ('SECRET_KEY = "k2#$dj9!v$ab(c8z^q1&w7"', 'SECRET_KEY = "[redacted: secret]"'),
        ("SECRET_KEY=k2#$dj9!v$ab(c8z^q1&w7*e=", "SECRET_KEY=[redacted: secret]"),
        ("DB_PASSWORD=pa$$w0rd9x!Q", "DB_PASSWORD=[redacted: password]"),
        ('password: "x$Yz88-kk!"', 'password: "[redacted: password]"'),
        ('$env:DB_PASSWORD = "rosebud19"', '$env:DB_PASSWORD = "[redacted: password]"'),
        ("setx API_KEY Zk81nQp20sLw77", "setx API_KEY [redacted: secret]"),
        ("gpg --passphrase rosebud19", "gpg --passphrase [redacted: password]"),
        (
            "kubectl create secret generic x --from-literal=password=rosebud19",
            "kubectl create secret generic x --from-literal=password=[redacted: password]",
        ),
        ("smbclient //x/y -U bob%rosebud19", "smbclient //x/y -U bob%[redacted: password]"),
        ("net use X: \\\\s\\x /user:bob rosebud19", "net use X: \\\\s\\x /user:bob [redacted: password]"),
        ("unzip -P rosebud19 a.zip", "unzip -P [redacted: password] a.zip"),
        ("7z x -prosebud19 a.7z", "7z x -p[redacted: password] a.7z"),
        ("openssl rsa -passin pass:rosebud19", "openssl rsa -passin pass:[redacted: password]"),
        ("openssl enc -k rosebud19 -in a", "openssl enc -k [redacted: password] -in a"),
        ("<db.password>rosebud19!</db.password>", "<db.password>[redacted: password]</db.password>"),
        ('<entry key="password">rosebud19</entry>', '<entry key="password">[redacted: password]</entry>'),
        ("https://x.y/z?key=Zk81nQp20sLw77Ab", "https://x.y/z?key=[redacted: api-key]"),
        ("user admin pass rosebud19", "user admin pass [redacted: password]"),
        ("a\nlocalhost:5432:app:me:Xk29vLq7", "a\nlocalhost:5432:app:me:[redacted: pgpass]"),
    ],
)
def test_a_secret_of_this_form_is_removed(text: str, plain: str) -> None:
    """Each stood in a packet as it was."""
    found = redact_text(text).text
    assert found == plain
    assert redact_text(found).text == found


def test_what_only_looks_like_one_stays() -> None:
    """A packet full of holes is as little use as a leak is."""
    rows = [
        f"CERT={b64encode(_CERTIFICATE.encode()).decode()}",
        f"md5 {_HEX}  file.txt",
        f"{_HEX}  id.key",
        f"cache key: {_HEX}",
        f"primary key {_HEX}",
        f"etag: {_HEX}",
        "commit 9f86d081884c7d659a2feaa0c55ad0159f86d081",
        'password: "Please enter your password"',
        'passphrase: "must be at least eight characters"',
        "passphrase: the words that unlock the store",
        "echo $PW | sudo -S ls",
        "echo ready | tee log",
        "cost $5 and $6 a month, $2b in all",
        "PASSWORT_DATEI=/etc/passwort.txt",
        "SENHA_ARQUIVO=/etc/senha2",
        "DB_PASSWORD=$DB_PASS1",
        'TOKEN="pre-$SUFFIX1-$HOME"',
        'secret = "x9-${SUFFIX}-$(date)1"',
        "SECRET_KEY=hashlib.sha256(x+y).hexdigest()[:32]",
        "TOKEN=$a && B=1",
        "clave_primaria = id2",
        "appkey: com.example.app2",
        "InstrumentationKey is read from the environment",
        "--password-file x1",
        "--pass 3",
        '<label for="password">Step2:</label>',
        '<h2 id="password">Step2Title</h2>',
        "<password>secret</password>",
        "?y=1&key=cache-user-42-v3-item",
    ]
    assert [text for text in rows if redact_text(text).text != text] == []
