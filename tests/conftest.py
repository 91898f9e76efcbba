"""Runtime type checks of everything but the compiled kernels, for all tests."""

from jaxtyping import install_import_hook

CHECKED = [
    "analysis",
    "config",
    "figures",
    "observables",
    "problem",
    "report",
    "simulation",
    "storage",
    "sweep",
    "theory",
]

install_import_hook([f"sweeplib.{floor}" for floor in CHECKED], "runtime_types.checked")
