"""Prices from the library's own data, without the network."""

import shutil
import socket
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from genai_prices import data_snapshot

from agent_relay.usage.prices import PriceList
from tests.house import tree

AT = 1_795_171_000_000
MILLION = Decimal(1_000_000)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("something asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_rates_are_those_of_the_library() -> None:
    """Five, half, six and a quarter, ten and twenty-five dollars a million: the published list price."""
    (rate,) = PriceList().get_rates("claude-opus-4-8", AT)
    found = [rate.input, rate.cached, rate.cache_write, rate.cache_write_long, rate.output]
    assert [price * MILLION for price in found] == [5, Decimal("0.5"), Decimal("6.25"), 10, 25]


def test_large_requests_have_their_own_rate() -> None:
    """Above 200,000 tokens of input this model costs twice as much for all of the request."""
    small, large = PriceList().get_rates("claude-sonnet-4-5-20250929", AT)
    assert (small.above, large.above) == (0, 200_000)
    assert (small.input * MILLION, large.input * MILLION, large.output * MILLION) == (3, 6, Decimal("22.5"))


@pytest.mark.parametrize("model", ["fake-large", "", "scripted", "x" * 10_000, "<synthetic>"])
def test_a_model_nobody_lists_has_no_rate(model: str) -> None:
    """It is unknown, not free."""
    assert PriceList().get_rates(model, AT) == ()


def test_a_price_that_changed_is_that_of_its_time() -> None:
    """Last year's work was paid at last year's price."""
    prices = PriceList()
    before, after = (prices.get_rates("o3", at)[0].input * MILLION for at in (1_746_000_000_000, AT))
    assert (before, after) == (10, 2)


def test_the_data_says_how_new_it_is_at_least() -> None:
    """A price list without a date is believed for too long."""
    prices = PriceList()
    assert prices.source.startswith("genai-prices ")
    newest = prices.find_newest(date(2026, 11, 20))
    assert newest is not None
    assert date(2025, 1, 1) < newest <= date(2026, 11, 20)
    assert prices.find_newest(date(1990, 1, 1)) is None


def test_the_librarys_own_client_is_not_loaded() -> None:
    """It is as dear as all the rest, and could ask the network; who wants it later gets the true one."""
    told = _run(
        "from agent_relay.usage.prices import PriceList\n"
        "print(len(PriceList().get_rates('claude-opus-4-8', 1_795_171_000_000)))\n"
        "print({'httpx2', 'pydantic', 'asyncio', 'importlib.metadata'} & set(sys.modules))\n"
        "import httpx2, pydantic\n"
        "print(hasattr(httpx2, 'get'), issubclass(pydantic.BaseModel, object))"
    )
    assert told == "1\nset()\nTrue True\n"


def test_the_version_told_is_the_one_installed() -> None:
    """It is read off a folder's name: what tells it otherwise is as dear to load as the prices."""
    told = _run(
        "from agent_relay.usage.prices import PriceList\n"
        "source = PriceList().source\n"
        "print('importlib.metadata' in sys.modules)\n"
        "from importlib.metadata import version\n"
        "print(source == 'genai-prices ' + version('genai_prices'))"
    )
    assert told == "False\nTrue\n"


def test_the_version_of_a_library_away_from_what_tells_of_it_is_found(tmp_path: Path) -> None:
    """A copy put into a folder of its own, without the folder of its installation, or in an archive."""
    package = tmp_path / "genai_prices"
    shutil.copytree(Path(data_snapshot.__file__).parent, package)
    told = _run(
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "from agent_relay.usage.prices import PriceList\n"
        "source = PriceList().source\n"
        "from importlib.metadata import version\n"
        "print(sys.modules['genai_prices'].__file__.startswith(sys.path[0]))\n"
        "print(source == 'genai-prices ' + version('genai_prices'))"
    )
    assert told == "True\nTrue\n"


def test_a_library_that_looks_into_its_client_gets_it(tmp_path: Path) -> None:
    """Another version may use it while it is loaded: then it is there, and only time is lost."""
    package = tmp_path / "genai_prices"
    package.mkdir()
    (package / "__init__.py").write_text("import httpx2\nTIMEOUT = httpx2.Timeout(1)\n")
    (package / "data_snapshot.py").write_text("")
    told = _run(
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "from agent_relay.usage.prices import load_prices\n"
        "load_prices()\n"
        "print(sys.modules['genai_prices'].TIMEOUT)"
    )
    assert told == "Timeout(timeout=1)\n"


SNAPSHOT = """
import pydantic
class Price(pydantic.BaseModel):
    usd: int
class Provider:
    models = [Price(usd="7")]
class Snapshot:
    providers = [Provider]
    def find_provider_model(self, model, *_):
        raise LookupError(Provider.models[0].usd)
def get_snapshot():
    return Snapshot()
"""


def test_a_library_whose_prices_are_checked_gets_what_checks_them(tmp_path: Path) -> None:
    """Another version may keep its prices in models of that: they must not be empty ones."""
    package = tmp_path / "genai_prices"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "types.py").write_text("class TieredPrices: ...\n")
    (package / "data_snapshot.py").write_text(SNAPSHOT)
    told = _run(
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "from agent_relay.usage.prices import load_prices\n"
        "load_prices()\n"
        "from genai_prices import data_snapshot\n"
        "print(data_snapshot.Provider.models)"
    )
    assert told == "[Price(usd=7)]\n"


def _run(code: str) -> str:
    words = [sys.executable, "-c", f"import sys\n{code}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tree.CHECKOUT, timeout=60)
    return done.stdout
