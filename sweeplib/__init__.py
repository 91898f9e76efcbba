"""sweeplib: distributed parameter sweeps of one-pass SGD in two-layer networks, and of its limits.

The names below are the public interface; each is imported when it is first used.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "ACTIVATIONS": "sweeplib.maths.activations",
    "ANALYSES": "sweeplib.analysis",
    "DYNAMICS": "sweeplib.dynamics",
    "FIGURES": "sweeplib.figures",
    "InputError": "sweeplib.errors",
    "OBSERVABLES": "sweeplib.observables",
    "Overlaps": "sweeplib.maths.overlaps",
    "Problem": "sweeplib.problem",
    "Sweep": "sweeplib.sweep",
    "SweeplibError": "sweeplib.errors",
    "open": "sweeplib.storage",
    "simulate": "sweeplib.simulation",
}

__all__ = [  # noqa: PLE0604 - the names are those above
    "__version__",
    *_HOMES,
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in ("open", "simulate", "Sweep"):
        importlib.import_module("sweeplib.accessor")  # registers `ds.sweep`
    thing = getattr(importlib.import_module(_HOMES[name]), "open_dataset" if name == "open" else name)
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
