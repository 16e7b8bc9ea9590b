"""What a message costs: the row of its model, day and prompt length, with exact sums."""

from decimal import Decimal
from pathlib import Path

import pytest

from hivepipe.costs import price_table
from hivepipe.costs.price_table import built_in, prices_in_force
from hivepipe.costs.prices import plain_name, read_prices
from hivepipe.costs.tokens import Rate, Tokens
from hivepipe.errors import PricesError

BUILT_IN = built_in()
MILLION = 1_000_000
ROW = "input = 1\noutput = 5\ncache_read = 0.1\ncache_write_5m = 1.25\ncache_write_1h = 2\n"


def rate(model: str, **more: object) -> Rate:
    return Rate(model, "2026-11-21", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tokens", "dollars"),
    [
        (Tokens(input=MILLION), "4"),
        (Tokens(output=MILLION), "20"),
        (Tokens(cache_read=MILLION), "0.20"),
        (Tokens(cache_write_5m=MILLION), "5"),
        (Tokens(cache_write_1h=MILLION), "8"),
        (Tokens(web_searches=1000), "10"),
        (Tokens(), "0"),
        (Tokens(1, 1, 1, 1, 1, 1), "0.0100372"),
    ],
)
def test_each_count_has_its_exact_price(tokens: Tokens, dollars: str) -> None:
    assert BUILT_IN.cost(rate("claude-opus-5-5"), tokens) == Decimal(dollars)


@pytest.mark.parametrize(
    ("day", "dollars"), [("2026-10-06", "0.20"), ("2026-10-07", "0.10"), ("", "0.20")]
)
def test_a_message_has_the_price_of_its_day(day: str, dollars: str) -> None:
    cost = BUILT_IN.cost(Rate("claude-sonnet-5-5", day), Tokens(cache_read=MILLION))
    assert cost == Decimal(dollars)


@pytest.mark.parametrize(("prompt", "dollars"), [(100_000, "0.50"), (100_001, "2.50")])
def test_a_long_prompt_has_prices_of_its_own(prompt: int, dollars: str) -> None:
    band = Tokens(cache_read=prompt - 1, input=1).band
    cost = BUILT_IN.cost(rate("claude-haiku-5-5", band=band), Tokens(output=MILLION))
    assert cost == Decimal(dollars)


def test_the_length_of_a_prompt_counts_all_that_was_sent() -> None:
    assert Tokens(40_000, 9_000_000, 30_000, 20_000, 10_001).band == 100_000
    assert Tokens(200_001).band == 200_000
    assert Tokens(100_000).band == 0


def test_fast_mode_and_inference_in_one_region_cost_more() -> None:
    tokens = Tokens(input=MILLION)
    assert BUILT_IN.cost(rate("claude-opus-5-5", speed="fast"), tokens) == 8
    assert BUILT_IN.cost(rate("claude-opus-5-5", region="us"), tokens) == Decimal("4.4")
    both = rate("claude-opus-5-5", speed="fast", region="us")
    assert BUILT_IN.cost(both, tokens) == Decimal("8.8")
    assert BUILT_IN.cost(rate("claude-haiku-4-5", region="us"), tokens) == 1


@pytest.mark.parametrize("model", ["claude-opus-6", "claude-opus-5-6", "gpt-5", "", "claude-"])
def test_an_unknown_model_or_mode_has_no_price(model: str) -> None:
    assert BUILT_IN.cost(rate(model), Tokens(input=1)) is None
    assert BUILT_IN.cost(rate("claude-haiku-5-5", speed="fast"), Tokens(input=1)) is None


@pytest.mark.parametrize(
    "name",
    [
        "claude-opus-4-6",
        "claude-opus-4-6[1m]",
        "claude-opus-4.6",
        "claude-opus-4-6-20260205",
        "claude-opus-4-6@20260205",
        "us.anthropic.claude-opus-4-6-v1:0",
        "anthropic.claude-opus-4-6-20260205-v1:0",
        "anthropic/claude-opus-4.6",
        "Claude-Opus-4-6",
    ],
)
def test_a_model_is_known_by_all_its_names(name: str) -> None:
    assert plain_name(name) == "claude-opus-4-6"
    assert BUILT_IN.cost(rate(name), Tokens(output=MILLION)) == 25


def test_the_table_has_its_date_its_source_and_older_models() -> None:
    assert BUILT_IN.date == "2026-11-21"
    assert BUILT_IN.source.startswith("https://")
    for name in ("claude-3-5-sonnet-20241022", "claude-sonnet-4"):
        assert BUILT_IN.cost(rate(name), Tokens(output=MILLION)) == 15


def test_cache_prices_have_a_known_ratio_to_the_input_price() -> None:
    """Writing costs 1.25 or 2 times the input, and reading less. A slip in the table fails here."""
    of_claude = (item for item in BUILT_IN.models.items() if item[0].startswith("claude-"))
    for name, rows in of_claude:
        for row in rows:
            base, output, read, minutes, hour = row.per_million
            assert read <= base / 10 * Decimal("1.2"), name
            assert minutes in (base * Decimal("1.25"), base * Decimal("1.2")), name
            assert hour == base * 2, name
            assert output in (base * 5, base * Decimal("3.75")), name


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    user, home = tmp_path / "config", tmp_path / "home"
    user.mkdir()
    home.mkdir()
    monkeypatch.setattr(price_table, "user_config_folder", lambda: str(user))
    return user, home


def test_the_users_table_takes_precedence_model_by_model(folders: tuple[Path, Path]) -> None:
    user, home = folders
    table = f'date = 2027-01-01\n[[price]]\nmodels = ["claude-opus-5", "my-model"]\n{ROW}'
    (user / "prices.toml").write_text(table)
    prices = prices_in_force(str(home))
    assert prices.cost(rate("claude-opus-5"), Tokens(input=MILLION)) == 1
    assert prices.cost(rate("my-model"), Tokens(input=MILLION)) == 1
    assert prices.cost(rate("claude-opus-5-5"), Tokens(input=MILLION)) == 4
    assert prices.cost(rate("claude-opus-5-5"), Tokens(web_searches=1)) == Decimal("0.01")
    assert prices.date == "2027-01-01"


def test_factors_may_be_a_table_of_their_own(folders: tuple[Path, Path]) -> None:
    row = f'[[price]]\nmodels = ["m", "claude-opus-5"]\n{ROW}'
    factor = '[[factor]]\nmodels = ["m", "claude-haiku-4-5", "none"]\nus = 3\n'
    (folders[0] / "prices.toml").write_text(row + factor)
    prices = prices_in_force(str(folders[1]))
    assert prices.cost(rate("m", region="us"), Tokens(input=MILLION)) == 3
    assert prices.cost(rate("claude-haiku-4-5", region="us"), Tokens(input=MILLION)) == 3
    assert prices.cost(rate("claude-opus-5", region="us"), Tokens(input=MILLION)) == 1
    assert prices.cost(rate("none"), Tokens(input=MILLION)) is None


def test_the_homes_table_takes_precedence_over_the_users(folders: tuple[Path, Path]) -> None:
    user, home = folders
    assert prices_in_force(str(home)) == BUILT_IN
    table = f'[[price]]\nmodels = ["m"]\n{ROW}'
    (user / "prices.toml").write_text(table)
    (home / "prices.toml").write_text(table.replace("= 1\n", "= 3\n"))
    assert prices_in_force(str(home)).cost(rate("m"), Tokens(input=MILLION)) == 3
    (home / "prices.toml").write_text("[[price]")
    with pytest.raises(PricesError, match=r"home/prices\.toml: not valid TOML"):
        prices_in_force(str(home))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("price = 3", "list of tables"),
        (f'[[prices]]\nmodels = ["m"]\n{ROW}', "unknown key 'prices'"),
        ("price = [3]", "row 1: not a table"),
        (f"[[price]]\n{ROW}", "row 1: `models`"),
        (f"[[price]]\nmodels = [1]\n{ROW}", "row 1: `models`"),
        (f'[[price]]\nmodels = ["m"]\n{ROW}x = 1', "unknown key 'x'"),
        ('[[price]]\nmodels = ["m"]\ninput = 1', "`output` is not a number"),
        (f'[[price]]\nmodels = ["m"]\n{ROW}'.replace("= 1\n", "= -1\n"), "`input` is not a price"),
        (f'[[price]]\nmodels = ["m"]\n{ROW}'.replace("= 1\n", "= nan\n"), "`input` is not a"),
        (f'[[price]]\nmodels = ["m"]\n{ROW}above = 5', "`above` is not one of 100000, 200000"),
        (f'[[price]]\nmodels = ["m"]\n{ROW}from = "now"', "`from` is not a date"),
        (f'[[price]]\nmodels = ["m"]\n{ROW}fast = true', "`fast` is not a number"),
        ('[[factor]]\nmodels = ["m"]\ninput = 1', "row 1: unknown key 'input'"),
        ("factor = 1", "`factor` is not a list of tables"),
        ("web_search = []", "`web_search` is not a number"),
    ],
)
def test_an_error_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(PricesError) as error:
        read_prices(text)
    assert message in str(error.value)
