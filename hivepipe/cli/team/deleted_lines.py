"""Report of what was deleted from a team's server, for `forget`, `leave` and `retention`."""

from hivepipe.cli.terminal import say
from hivepipe.team.archives.leftovers import WAITING


def show_deleted(places: dict[str, int], word: str = "deleted") -> None:
    """Print the number of deleted rows for each place, after the verb `word`.

    Archive objects in S3 can be deleted only with the key of the bucket. The number of objects that
    wait for a user with this key is printed to stderr.
    """
    for place, number in sorted(places.items()):
        if place != WAITING:
            say(f"{word}: {place}: {number}")
    if waiting := places.get(WAITING):
        say(f"{waiting} {WAITING}", err=True)
