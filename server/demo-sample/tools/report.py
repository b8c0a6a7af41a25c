"""Writes the monthly report from the engine's log.

The log has one line a boat and night: berth number, boat's name, metres.
"""

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Iterable, Iterator


@dataclass
class Usage:
    """What happened at one berth in a month."""

    berth: int
    nights: int = 0
    boats: set[str] = field(default_factory=set)
    metres: int = 0

    def add(self, boat: str, metres: int) -> None:
        self.nights += 1
        self.boats.add(boat)
        self.metres += metres

    def mean_length(self) -> float:
        return self.metres / self.nights if self.nights else 0.0


def read_log(lines: Iterable[str]) -> Iterator[tuple[int, str, int]]:
    """Yields berth, boat and metres of every line that can be read."""
    for line in lines:
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3 or not parts[0].isdigit() or not parts[2].isdigit():
            continue
        yield int(parts[0]), parts[1], int(parts[2])


def collect(lines: Iterable[str]) -> dict[int, Usage]:
    """Adds the log up, berth by berth."""
    usage: dict[int, Usage] = {}
    for berth, boat, metres in read_log(lines):
        usage.setdefault(berth, Usage(berth)).add(boat, metres)
    return usage


def summarise(usage: dict[int, Usage]) -> list[str]:
    """One line a berth, in the order of their numbers."""
    rows = []
    for berth in sorted(usage):
        entry = usage[berth]
        rows.append(f"berth {berth:>3}  {entry.nights:>3} nights  {entry.mean_length():.1f} m")
    return rows


def regulars(usage: dict[int, Usage], least: int = 3) -> list[str]:
    """The boats that were seen at `least` berths or more."""
    seen: dict[str, int] = defaultdict(int)
    for entry in usage.values():
        for boat in entry.boats:
            seen[boat] += 1
    return sorted(boat for boat, berths in seen.items() if berths >= least)


def main() -> int:
    usage = collect(sys.stdin)
    for row in summarise(usage):
        print(row)
    for boat in regulars(usage):
        print(f"regular: {boat}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
