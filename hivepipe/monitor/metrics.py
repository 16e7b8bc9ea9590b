"""The report of a stack as Prometheus metrics."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

Report = dict[str, Any]


@dataclass(frozen=True, eq=False)  # the registry needs its hash
class StackCollector(Collector):
    """Converts the report of `status --json` to metrics; unavailable values are left out."""

    report: Report

    def collect(self) -> Iterator[Metric]:
        report = self.report
        running = {each["name"]: each["state"] == "running" for each in report["processes"]}
        alerts = {each["name"]: 1.0 for each in report["alerts"]}
        yield _gauge("healthy", "1 if the stack runs and no alert is active", report["healthy"])
        yield _gauge("redis_up", "1 if Redis answers", report["redis"] == "up")
        yield _gauge("spooled_events", "events that wait on disk", report["spool"])
        yield _gauge("set_aside_events", "events on disk that cannot be read", report["set_aside"])
        yield _labelled("process_up", "1 if the process runs", "process", running)
        yield _labelled("alert", "1 for each active alert", "alert", alerts)
        if report["team"] is not None:
            yield from _of_uplink(report["team"])
        if report["effectless"] is not None:
            yield from _without_effect(report["effectless"])
        if report["accounts"] is not None:
            yield from _of_redis(report)


def _of_uplink(team: Report) -> Iterator[Metric]:
    is_well = team["state"] in ("connected", "resting")
    yield _gauge("uplink_up", "1 if the team's server accepted the last batch", is_well)
    if team["lag_rows"] is not None:
        yield _gauge(
            "uplink_lag_rows", "rows that the team's server does not have", team["lag_rows"]
        )
        yield _gauge("uplink_lag_seconds", "age of the oldest of them", team["lag_secs"])
    yield _gauge("uplink_left_out_rows", "rows that the server cannot store", team["left_out"])


def _of_redis(report: Report) -> Iterator[Metric]:
    accounts = dict(report["accounts"])
    yield _counter("jobs_accepted", "accepted jobs", accounts.pop("accepted"))
    yield _counter("jobs_done", "executed jobs", accounts.pop("done"))
    yield _counter("jobs_discarded", "failed jobs that were discarded", accounts.pop("discarded"))
    yield _counter("jobs_retried", "attempts that were retried", report["retried"])
    yield _labelled("jobs", "jobs by state", "state", accounts)
    yield _labelled("queue_length", "jobs that wait in a queue", "queue", report["queues"])
    yield _labelled(
        "operations",
        "executed jobs by operation",
        "operation",
        report["operations"],
        CounterMetricFamily,
    )
    yield _gauge(
        "oldest_job_seconds", "age of the oldest queued job", report["oldest_waiting_secs"] or 0
    )
    yield _labelled("workers", "workers with a heartbeat, by queue", "queue", _workers(report))


def _workers(report: Report) -> dict[str, float]:
    return {
        queue: sum(worker["alive"] and queue in worker["queues"] for worker in report["workers"])
        for queue in report["queues"]
    }


def _gauge(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(f"hivepipe_{name}", what, value=float(value))


def _counter(name: str, what: str, value: float) -> Metric:
    return CounterMetricFamily(f"hivepipe_{name}", what, value=float(value))


def _labelled(
    name: str,
    what: str,
    label: str,
    values: dict[str, float],
    kind: type[GaugeMetricFamily | CounterMetricFamily] = GaugeMetricFamily,
) -> Metric:
    family = kind(f"hivepipe_{name}", what, labels=[label])
    for value, count in values.items():
        family.add_metric([value], float(count))
    return family


def _without_effect(counters: dict[str, int]) -> Iterator[Metric]:
    """Convert the counters `<reason>:<operation>` and `dropped:<what>` of the database."""
    about = "jobs that changed nothing, by reason and operation"
    jobs = CounterMetricFamily("hivepipe_without_effect", about, labels=["reason", "operation"])
    about = "rows that were dropped for their age before they were stored"
    dropped = CounterMetricFamily("hivepipe_dropped", about, labels=["what"])
    for name, count in counters.items():
        reason, _, of = name.partition(":")
        if reason == "dropped":
            dropped.add_metric([of], float(count))
        else:
            jobs.add_metric([reason, of], float(count))
    yield from (jobs, dropped)


def exposition(report: Report) -> bytes:
    """Return the metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StackCollector(report))
    return generate_latest(registry)
