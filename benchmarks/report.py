"""The table and the JSON file of the results."""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.timing import Measured

UNITS = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))


def table(rows: Sequence[Measured]) -> Any:
    """Return a table for the terminal: one row per benchmark, with its baseline and floor."""
    from rich.table import Table

    made = Table(title="one thread; best of all turns, quotients are medians of paired turns")
    for heading, side in (
        ("work", "left"),
        ("sweeplib", "right"),
        ("goal", "right"),
        ("baseline", "right"),
        ("", "left"),
        ("speed-up", "right"),
        ("floor", "right"),
        ("", "left"),
        ("sweeplib/floor", "right"),
    ):
        made.add_column(heading, justify=side)  # type: ignore[arg-type]
    for row in rows:
        made.add_row(
            row.name,
            f"{duration(row.seconds)} {row.unit}",
            duration(row.reach),
            duration(row.baseline),
            row.baseline_is,
            number(row.ratio),
            duration(row.floor),
            row.floor_is,
            number(row.over_floor),
        )
    return made


def duration(seconds: float | None) -> str:
    """Return seconds with three digits and a unit; "" for None."""
    if seconds is None:
        return ""
    scale, unit = next(((scale, unit) for scale, unit in UNITS if seconds < 1000 * scale), UNITS[-1])
    return f"{seconds / scale:.3g} {unit}"


def number(value: float | None) -> str:
    """Return a quotient with three digits; "" for None."""
    return "" if value is None else f"{value:.3g}"


def written(rows: Sequence[Measured], path: Path) -> None:
    """Write the results, and a description of the machine, as JSON."""
    import numba
    import numpy as np

    machine = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }
    path.write_text(json.dumps({"machine": machine, "measured": [row.record() for row in rows]}, indent=1) + "\n")


def _processor() -> str:
    from sweeplib.engine.storage.records.provenance import cpu_model

    return cpu_model()
