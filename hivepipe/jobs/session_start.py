"""What the start of a session says about it: payload, columns, and fields of `session show`."""

from hivepipe.jobs.args import Args


class Start(Args):
    """The content of a start of a session; "" is unknown.

    `source` is how the session began, or "" if the start was derived from another event.
    """

    title: str = ""
    transcript_path: str = ""
    model: str = ""
    source: str = ""
    client: str = ""


# column of the table `sessions` -> field
COLUMNS = {"objective" if name == "title" else name: name for name in Start.__annotations__}
