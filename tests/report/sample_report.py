"""A report with every part filled in."""

import numpy as np

from colonnade.job import Job
from colonnade.privacy.exposure import Finding
from colonnade.record import Report, Trace

STEPS = 1500


def a_report(**changes) -> Report:
    steps = np.arange(STEPS)
    gap = 0.25 * np.exp(-steps / 100) + 1e-9
    trace = Trace(
        dict.fromkeys(("rounds", "rows", "steps", "messages", "bytes"), steps * 7)
        | {"seconds": steps / 10, "objective": 0.4 + gap}
    )
    settings = {
        "job": Job(batch_size=10),
        "chosen": {"method": "afsaga", "labels": ["bank"], "step": 0.01},
        "world": "processes",
        "rows": 300,
        "columns": {"bank": ["age", "sum"], "shop": ["visits"]},
        "classes": ["good", "bad"],
        "trace": trace,
        "weights": {"bank": np.array([0.5, -4.0]), "shop": np.array([3.0])},
        "intercept": 0.5,
        "outcome": "converged",
        "detail": "The certificate met tol.",
        "objective": float(trace["objective"][-1]),
        "certificate": 5e-7,
        "seconds": 149.9,
        "exposure": [
            Finding("info", "bank", "shop", "Bank asked twice."),
            Finding("warning", "shop", "bank", "Shop can read labels."),
        ],
        "workload": {"bank": {"computing": 3.0, "communicating": 1.0, "waiting": 0.0, "messages": 12}},
        "received": {"shop": {"slopes": 4321, "totals": 0}},
        "reference": {"optimum": 0.4, "measure": "AUC", "scores": {"alone": 0.61, "together": 0.72}},
    }
    return Report(**(settings | changes))
