"""The parts of briefings as files, whatever rows another program wrote."""

from contextlib import closing
from pathlib import Path

import pytest

from hivepipe.db.database import Database
from hivepipe.operations.briefing_files import BriefingFiles


@pytest.mark.parametrize("id", ["shop/42", "../../x", "a\0b", "x" * 300])
def test_an_id_that_is_no_file_name_leaves_the_other_parts(tmp_path: Path, id: str) -> None:
    with closing(Database(tmp_path / "hive.db")) as db:
        for task in (id, "mine"):
            db.execute(
                "INSERT INTO tasks (id, text, status, updated_at) VALUES (:id, 'Mend it', 'open', "
                "'2026-11-26T10:00:00.000Z')",
                {"id": task},
            )
    BriefingFiles(str(tmp_path)).write(tmp_path / "hive.db")
    assert [path.name for path in (tmp_path / "context").glob("task-*")] == ["task-mine.txt"]
