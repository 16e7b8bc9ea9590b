"""Declarations of operations in installed packages, and the jobs that events create for them."""

import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import hivepipe
from hivepipe.db.database import Database
from hivepipe.db.forget import remove_rows
from hivepipe.errors import OperationFailedError
from hivepipe.jobs import retry
from hivepipe.jobs.envelope import envelope_of
from hivepipe.jobs.origin import Origin
from hivepipe.operations import custom, custom_runs
from hivepipe.operations.custom import declaration_of, operation
from hivepipe.operations.families.custom import RunCustom
from hivepipe.operations.job_context import JobContext


def committed(operation: str, **payload: object) -> object:
    """Return the envelope of a job as the writer has it after the commit."""
    return envelope_of(
        {
            "v": 1,
            "id": "j1",
            "operation": operation,
            "priority": 2,
            "payload": payload,
            "metadata": {"session": "s1", "instance": "i1", "project": "/p"},
            "event_time_ns": 1,
        }
    )


def test_the_decorator_keeps_the_function_and_its_declaration() -> None:
    @hivepipe.operation(on=["Stop", "SessionEnd"], retries=0, timeout_secs=1)
    def own(event: dict[str, object]) -> object:
        return event

    assert own({}) == {}
    assert declaration_of(own) == (("Stop", "SessionEnd"), 0, 1)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"on": []}, "no event"),
        ({"on": "Stopp"}, "Stopp"),
        ({"on": ["Stop"], "retries": 21}, "retries"),
        ({"on": ["Stop"], "retries": -1}, "retries"),
        ({"on": ["Stop"], "timeout_secs": 0}, "timeout_secs"),
        ({"on": ["Stop"], "timeout_secs": 601}, "timeout_secs"),
    ],
)
def test_a_wrong_declaration_is_an_error_that_names_it(
    values: dict[str, object], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        operation(**values)  # type: ignore[arg-type]


def test_each_installed_operation_gets_a_job_with_redacted_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert custom.installed_names() == ()
    assert custom_runs.custom_jobs(committed("end_session")) == []
    monkeypatch.setattr(custom_runs, "installed_names", lambda: ("a", "b"))
    jobs = custom_runs.custom_jobs(committed("end_session", reason="password=hunter2hunter2"))
    assert [(job.operation, job.payload["name"], job.payload["event"]) for job in jobs] == [
        ("run_custom", "a", "SessionEnd"),
        ("run_custom", "b", "SessionEnd"),
    ]
    assert "hunter2" not in str(jobs)
    assert custom_runs.custom_jobs(committed("update_checkpoint")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux chooses a process")
def test_an_operation_is_ended_before_other_processes_if_there_is_no_memory() -> None:
    code = (
        "import sys; from hivepipe.operations import custom_child as child; "
        "child._run = lambda *_: sys.stderr.write(open('/proc/self/oom_score_adj').read()); "
        "child.main()"
    )
    request = json.dumps({"name": "a", "event": None})
    words = [sys.executable, "-I", "-c", code]
    done = subprocess.run(words, input=request, capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "1000"


def test_no_operation_runs_for_a_forgotten_session(tmp_path: Path, db: Database) -> None:
    remove_rows(db, ["s1"])
    context = JobContext(str(tmp_path), "", lambda _job, _jobs: None)
    args = RunCustom(name="missing", event="SessionEnd", data={})
    for session, fails in (("s1", nullcontext()), ("s2", pytest.raises(OperationFailedError))):
        job = Origin(id="1", operation="run_custom", event_time_ns=1, session=session)
        with fails:
            custom_runs.run_custom(context, job, args)


@pytest.mark.parametrize("points", [b"[console_scripts]\nno value\n", b"[a]\n\xff = m:f\n"])
def test_a_package_with_damaged_entry_points_hides_no_other_package(
    points: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _install(tmp_path, "damaged", points)
    _install(tmp_path, "good", f"[{custom.GROUP}]\nreport = m:f\n".encode())
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [point.name for point in custom.installed_points()] == ["report"]
    assert "damaged-1.0.dist-info cannot be read" in caplog.text


def test_of_two_copies_of_a_package_only_the_one_that_is_imported_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = (
        ("a", "hive.ops", custom.GROUP),
        ("b", "Hive_Ops", custom.GROUP),
        ("c", "hive_ops", "x"),
    )
    for (folder, name, group), expected in zip(versions, (["a"], ["b"], []), strict=True):
        _install(tmp_path / folder, name, f"[{group}]\n{folder} = m:f\n".encode())
        monkeypatch.syspath_prepend(str(tmp_path / folder))
        assert [point.name for point in custom.installed_points()] == expected


def test_a_package_whose_folder_has_another_name_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it is installed twice, only the first copy counts."""
    for copy in ("old", "new"):
        points = f"[{custom.GROUP}]\n{copy} = m:f\n".encode()
        _install(tmp_path / copy, "reports", points, folder_name="checkout")
        monkeypatch.syspath_prepend(str(tmp_path / copy))
    assert [point.name for point in custom.installed_points()] == ["new"]


def _install(path: Path, name: str, points: bytes, folder_name: str = "") -> None:
    folder = path / f"{folder_name or name}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_bytes(points)


def test_the_delays_of_a_failed_operation() -> None:
    delays = [retry.operation_delay_secs(attempt, 6) for attempt in range(1, 8)]
    assert delays == [1.0, 5.0, 30.0, 120.0, 120.0, 120.0, None]
    assert retry.operation_delay_secs(1, 0) is None
