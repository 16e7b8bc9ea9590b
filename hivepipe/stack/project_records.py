"""Read the records of the user's projects and homes, which registration.py writes."""

import os

from hivepipe.home import parse_record, read_small, state_folder


def records() -> list[dict[str, str]]:
    """Return the records of all projects and homes, without the aliases of moved homes."""
    found = [parse_record(read_small(file)) for file in record_files()]
    return [record for record in found if record.get("home") and "alias" not in record]


def records_folder() -> str:
    return f"{state_folder()}/projects"


def record_files() -> list[str]:
    folder = records_folder()
    try:
        return [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if "." not in name]
    except FileNotFoundError:
        return []
