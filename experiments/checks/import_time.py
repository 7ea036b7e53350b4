"""Seconds that `import colonnade` and `colonnade --help` take beyond a new interpreter's import of numpy.

Whole commands, start to end, in turn; medians.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from experiments.checks.common import Check, leave, quick

COMMANDS = {
    "import numpy": [sys.executable, "-c", "import numpy"],
    "import colonnade": [sys.executable, "-c", "import numpy, colonnade"],
    "import colonnade, Job, simulate": [
        sys.executable,
        "-c",
        "import numpy; from colonnade import Job, simulate",
    ],
    "colonnade --help": [str(Path(sys.executable).with_name("colonnade")), "--help"],
}
REPEATS = 7


def seconds(command: list[str]) -> float:
    started = perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return perf_counter() - started


def main() -> None:
    small = quick(__doc__)
    check = Check("import_time", "import and --help, seconds beyond numpy's own import", quick=small)
    took: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for command in COMMANDS.values():
        seconds(command)  # from disk into memory
    for _ in range(3 if small else REPEATS):
        for name, command in COMMANDS.items():
            took[name].append(seconds(command))
    alone = median(took["import numpy"])
    check.report("import numpy, new interpreter included: s", alone)
    for name in list(COMMANDS)[1:]:
        check.at_most(f"{name}: s", median(took[name]) - alone, 0.3)
    check.notes["all runs"] = {name: [round(t, 4) for t in times] for name, times in took.items()}
    leave(check)


if __name__ == "__main__":
    main()
