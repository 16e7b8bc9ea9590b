"""Our prices compared with those of genai-prices: the copied table and each known difference.

If a new release of genai-prices fails here, run `make prices`, read the difference and correct
this list.
"""

import runpy
from importlib.metadata import version
from pathlib import Path

from hivepipe.costs.price_table import GENAI_FILE, built_in
from hivepipe.costs.prices import Price, read_prices

ROOT = Path(__file__).resolve().parents[2]
TAKEN_OVER = ROOT / "hivepipe" / "costs" / GENAI_FILE

# Rows of genai-prices (-) and ours (+): input/output/cache read/written for 5 minutes/for an hour.
DIFFERENCES = """\
claude-fable-5
  - 10/50/1/12.5/20
  + 10/50/1/12.5/20, us x1.1
claude-fable-5-1
  - 10/50/0.25/12.5/20
  + 10/50/0.25/12.5/20, us x1.1
claude-fable-5-2
  - 8/40/0.2/10/16
  + 8/40/0.2/10/16, fast x2, us x1.1
claude-haiku-5-5
  - 0.1/0.5/0.01/0.125/0.2
  - above 100000 0.5/2.5/0.05/0.625/1
  + 0.1/0.5/0.01/0.125/0.2, us x1.1
  + above 100000 0.5/2.5/0.05/0.625/1, us x1.1
claude-mythos-5
  + 10/50/1/12.5/20, us x1.1
claude-mythos-5-1
  + 10/50/0.25/12.5/20, us x1.1
claude-mythos-5-2
  - 8/40/0.2/10/16
  + 8/40/0.2/10/16, fast x2, us x1.1
claude-opus-4-6
  - 5/25/0.5/6.25/10
  - above 200000 10/37.5/1/12.5/20
  - from 2026-03-13 5/25/0.5/6.25/10
  + 5/25/0.5/6.25/10, fast x6, us x1.1
claude-opus-4-7
  - 5/25/0.5/6.25/10
  + 5/25/0.5/6.25/10, fast x6, us x1.1
claude-opus-4-8
  - 5/25/0.5/6.25/10
  + 5/25/0.5/6.25/10, fast x2, us x1.1
claude-opus-5
  - 5/25/0.5/6.25/10
  + 5/25/0.5/6.25/10, fast x2, us x1.1
claude-opus-5-5
  - 4/20/0.2/5/8
  + 4/20/0.2/5/8, fast x2, us x1.1
claude-sonnet-4
  + above 200000 6/22.5/0.6/7.5/12
claude-sonnet-4-0
  + above 200000 6/22.5/0.6/7.5/12
claude-sonnet-4-6
  - 3/15/0.3/3.75/6
  - above 200000 6/22.5/0.6/7.5/12
  - from 2026-03-13 3/15/0.3/3.75/6
  + 3/15/0.3/3.75/6, us x1.1
claude-sonnet-5
  - 2/10/0.2/2.5/4
  + 2/10/0.2/2.5/4, us x1.1
claude-sonnet-5-5
  - 2/10/0.1/2.5/4
  + 2/10/0.2/2.5/4, us x1.1
  + from 2026-10-07 2/10/0.1/2.5/4, us x1.1
"""


def formatted(row: Price) -> str:
    above = f"above {row.above} " if row.above else ""
    since = f"from {row.since} " if row.since else ""
    factors = "".join(f", {name} x{factor}" for name, factor in row.factors.items())
    amounts = "/".join(f"{amount.normalize():f}" for amount in row.per_million)
    return f"{since}{above}{amounts}{factors}"


def differences() -> list[str]:
    theirs, ours = read_prices(TAKEN_OVER.read_text()).models, built_in().models
    found = []
    for name in sorted(name for name in ours if name.startswith("claude-")):
        their, our = ([formatted(row) for row in table.get(name, ())] for table in (theirs, ours))
        changed = [f"  - {row}" for row in their if row not in our]
        changed += [f"  + {row}" for row in our if row not in their]
        found += [name, *changed] if changed else []
    return found


def test_the_table_is_that_of_the_installed_release() -> None:
    made = runpy.run_path(str(ROOT / ".ci" / "prices.py"))["table"]()
    assert f"genai-prices {version('genai-prices')}" in made
    assert TAKEN_OVER.read_text() == made, "run `make prices` and read what changed"


def test_each_difference_of_a_price_is_known() -> None:
    assert differences() == DIFFERENCES.splitlines()


def test_no_correction_equals_a_row_of_genai_prices() -> None:
    """A correction that equals a row of genai-prices must be deleted."""
    text = TAKEN_OVER.with_name("prices.toml").read_text()
    theirs = read_prices(TAKEN_OVER.read_text())
    same = [
        name
        for name, rows in read_prices(text).models.items()
        if set(map(repr, theirs.models.get(name, ()))) == set(map(repr, rows))
    ]
    assert same == []
