"""Ends with 1 unless the tests take 95 % of the branches of core, privacy and wire."""

import json
import sys
from pathlib import Path
from typing import Any

ROOMS = ("core", "privacy", "wire")
NEEDED = 95.0


def branches(files: dict[str, Any], room: str) -> tuple[int, int]:
    """Branches taken, and branches there are."""
    found = [entry["summary"] for name, entry in files.items() if Path(name).parent.name == room]
    return sum(each["covered_branches"] for each in found), sum(each["num_branches"] for each in found)


def main(path: str) -> int:
    files = json.loads(Path(path).read_text())["files"]
    short = 0
    for room in ROOMS:
        taken, there = branches(files, room)
        percent = 100 * taken / there if there else 0.0
        short += percent < NEEDED
        print(f"branch coverage of {room}: {percent:.1f} % ({taken} of {there}; needed {NEEDED:.0f} %)")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
