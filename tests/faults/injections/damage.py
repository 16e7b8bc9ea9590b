"""Counts of the damage of a fault (lost, double, corrupt), and the table of all faults."""

from collections import Counter
from collections.abc import Iterable

KINDS = ("lost", "double", "corrupt")


class Damage:
    """The number of each kind of damage, with descriptions."""

    def __init__(self) -> None:
        self.counts = Counter(dict.fromkeys(KINDS, 0))
        self.seen: list[str] = []

    def count(self, kind: str, many: int, what: str) -> None:
        """Add a number, which may be 0."""
        self.counts[kind] += many
        if many:
            self.seen.append(f"{kind} {many}: {what}")

    def __bool__(self) -> bool:
        return any(self.counts.values())

    @classmethod
    def of_rows(cls, differences: Iterable[str]) -> "Damage":
        """Count the lines `table - row` and `table + row`; one of each is a corrupt row."""
        damage = cls()
        signs: dict[str, Counter[str]] = {}
        for said in differences:
            table, sign, _ = said.split(" ", 2)
            signs.setdefault(table, Counter())[sign] += 1
            damage.seen.append(said)
        for found in signs.values():
            other = min(found["-"], found["+"])
            damage.counts["corrupt"] += other
            damage.counts["lost"] += found["-"] - other
            damage.counts["double"] += found["+"] - other
        return damage


def table(rows: dict[tuple[str, str], int], damage: Counter[str]) -> str:
    """Return the table: fault, step, number of rounds."""
    lines = [f"  {fault:<44} {step:<44} {many:>5}" for (fault, step), many in rows.items()]
    total = f"{sum(rows.values())} rounds, in each the fault was seen at the step it hit"
    said = ", ".join(f"{kind} {damage[kind]}" for kind in KINDS)
    return "\n".join([*lines, "", f"  {total}", f"  {said}"])
