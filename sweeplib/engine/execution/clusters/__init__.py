"""The kinds of Dask clusters on which blocks run, one per file, and which of them a sweep has."""

from pathlib import Path

from sweeplib.engine.base.registry import import_modules
from sweeplib.engine.cases import Case
from sweeplib.engine.design.cluster import CLUSTERS, LEAST_MEMORY, MEMORY_SHARE, ClusterSettings
from sweeplib.engine.design.design import Design
from sweeplib.errors import InputError

__all__ = ["CLUSTERS", "ClusterSettings", "cluster_of", "refuse_large_cases", "refuse_unfit"]

import_modules(__name__, __path__)


def cluster_of(sweep: Design) -> ClusterSettings:
    """Return the cluster settings of a sweep: by default this machine with all of its cores."""
    return sweep.cluster or CLUSTERS["local"]()


def refuse_unfit(sweep: Design, dynamics: str, directory: Path, workers: int | None = None) -> None:
    """Raise InputError if cases of a dynamics cannot be computed on the cluster of a sweep with results in a directory.

    workers : their number, None for what the config says.
    """
    cluster_of(sweep).in_results(directory).check()
    refuse_large_cases(sweep, dynamics, workers)


def refuse_large_cases(sweep: Design, dynamics: str, workers: int | None = None) -> None:
    """Raise InputError if a worker, whose memory is known, has too little to start, or less than a case needs.

    Only cases at the probed points are looked at. workers : their number, None for what the config says.
    """
    limit = cluster_of(sweep).known_memory(workers)
    if limit is None:
        return
    if limit < LEAST_MEMORY:
        problem = f"each worker would have {limit / 10**6:.0f} MB of memory"
        expected = f"at least {LEAST_MEMORY // 10**6} MB: fewer workers, or a container or job with more memory"
        raise InputError(problem, key="cluster", expected=expected)
    case = max(sweep.probed(dynamics), key=_most_memory)
    needed, most = _most_memory(case), int(MEMORY_SHARE * limit)
    if needed > most:
        point = ", ".join(f"{name}={value}" for name, value in case.simulator.sizes(case).items())
        problem = f"a case of {sweep.name} needs more bytes of memory than a worker may take, at {point}"
        smaller = "fewer samples, a smaller d" if sweep.function is None else "smaller arrays"
        expected = f"at most {most}: {smaller}, or workers with more memory"
        raise InputError(problem, key=f"dynamics.{dynamics}", value=needed, expected=expected)


def _most_memory(case: Case) -> int:
    """Return the bytes that a case takes at most."""
    return case.simulator.peak_memory(case)
