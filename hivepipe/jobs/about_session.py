"""Facts about a session from its events.

The keys of payloads and the columns are named like the fields, except that `title` is stored in the
column `objective`.
"""

from hivepipe.jobs.args import Args


class AboutSession(Args):
    """Facts about a session from one of its events; "" is unknown.

    `source` is how the session began, or "" if the start was derived from another event.
    """

    title: str = ""
    transcript_path: str = ""
    model: str = ""
    source: str = ""
    client: str = ""
    effort: str = ""

    def columns(self) -> dict[str, str]:
        """Return column -> value of the known fields."""
        found = {column: getattr(self, field) for column, field in COLUMNS.items()}
        return {column: value for column, value in found.items() if value}


# column of the table `sessions` -> field
COLUMNS = {"objective" if name == "title" else name: name for name in AboutSession.__annotations__}
