"""The price table in use: genai-prices with corrections, then the user's overrides.

Importing genai-prices would take 25 MB, so `make prices` writes its prices to a file.
"""

from functools import cache
from pathlib import Path

from hivepipe.costs.prices import PriceTable, read_prices
from hivepipe.errors import PricesError
from hivepipe.files.regular_file import read_text
from hivepipe.home import user_config_folder

FILE_NAME = "prices.toml"
GENAI_FILE = "genai_prices.toml"


@cache
def built_in() -> PriceTable:
    return _packaged(GENAI_FILE).with_overrides(_packaged(FILE_NAME))


def _packaged(name: str) -> PriceTable:
    return read_prices(Path(__file__).with_name(name).read_text("utf-8"))


def prices_in_force(home: str) -> PriceTable:
    """Return the built-in prices, overridden by the user's file, then by the home's file.

    Raise PricesError with the name of a file that cannot be read.
    """
    table = built_in()
    for folder in (user_config_folder(), home):
        path = Path(folder, FILE_NAME)
        try:
            table = table.with_overrides(read_prices(read_text(path)))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeDecodeError, PricesError) as error:
            raise PricesError(f"{path}: {error}") from error
    return table
