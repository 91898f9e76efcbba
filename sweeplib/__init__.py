"""sweeplib: random experiments over a grid, each run once: two-layer networks that learn by SGD, or your own function.

The names below are the public interface; each is imported when it is first used.
"""

import importlib

TYPE_CHECKING = False  # that of `typing`, whose import takes as long as a job of a workflow has to start
if TYPE_CHECKING:
    from sweeplib.analysis import ANALYSES
    from sweeplib.analysis.kit.combination import combine
    from sweeplib.engine.storage import open_dataset as open  # noqa: A004 - `sweeplib.open`
    from sweeplib.errors import InputError, SweeplibError
    from sweeplib.functions.function import simulator
    from sweeplib.functions.program import program
    from sweeplib.functions.results import Result
    from sweeplib.networks.dynamics import DYNAMICS
    from sweeplib.networks.maths.activations import ACTIVATIONS
    from sweeplib.networks.maths.overlaps import Overlaps
    from sweeplib.networks.observables import OBSERVABLES
    from sweeplib.networks.problem import Problem
    from sweeplib.networks.simulation import simulate
    from sweeplib.pictures.figures import FIGURES
    from sweeplib.sweeps import Sweep, answer, sweep

__version__ = "0.4.0"

# names that are imported at their first use, with their modules: `import sweeplib` takes no time
_HOMES = {
    "ACTIVATIONS": "sweeplib.networks.maths.activations",
    "ANALYSES": "sweeplib.analysis",
    "DYNAMICS": "sweeplib.networks.dynamics",
    "FIGURES": "sweeplib.pictures.figures",
    "InputError": "sweeplib.errors",
    "OBSERVABLES": "sweeplib.networks.observables",
    "Overlaps": "sweeplib.networks.maths.overlaps",
    "Problem": "sweeplib.networks.problem",
    "Sweep": "sweeplib.sweeps",
    "SweeplibError": "sweeplib.errors",
    "combine": "sweeplib.analysis.kit.combination",
    "open": "sweeplib.engine.storage",
    "Result": "sweeplib.functions.results",
    "program": "sweeplib.functions.program",
    "answer": "sweeplib.sweeps",
    "sweep": "sweeplib.sweeps",
    "simulate": "sweeplib.networks.simulation",
    "simulator": "sweeplib.functions.function",
}

__all__ = [
    "ACTIVATIONS",
    "ANALYSES",
    "DYNAMICS",
    "FIGURES",
    "OBSERVABLES",
    "InputError",
    "Overlaps",
    "Problem",
    "Result",
    "Sweep",
    "SweeplibError",
    "__version__",
    "answer",
    "combine",
    "open",
    "program",
    "simulate",
    "simulator",
    "sweep",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in ("answer", "combine", "open", "simulate", "Sweep", "sweep"):
        importlib.import_module("sweeplib.accessor")  # registers `ds.sweep`
    thing = getattr(importlib.import_module(_HOMES[name]), "open_dataset" if name == "open" else name)
    # the next use finds it without this function
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
