"""The overlap chain, a replica and step; 1024 replicas at once, as the driver runs them."""

from benchmarks.timing import Benchmark, Work
from sweeplib import Overlaps, Problem
from sweeplib.dynamics import DYNAMICS
from sweeplib.simulation import Case, Recording
from sweeplib.simulation.driver import replicas_of


def steps_of(
    problem: Problem,
    dynamics: str,
    replicas: int,
    steps: int,
    initial: Overlaps | None = None,
    thresholds: tuple[float, ...] = (),
    **options: float | str,
) -> Work:
    """Work that takes some steps with some replicas of a problem, without the start that is drawn for them."""
    recording = Recording((steps * problem.step_time(),), thresholds)
    given = tuple(sorted(options.items()))
    cases = [Case(problem, dynamics, seed, recording, options=given) for seed in range(replicas)]
    start = replicas_of(cases, initial)

    def work() -> float:
        run = DYNAMICS[dynamics](start, cases[0].numerical_options())
        run.advance(0)
        return float(run.end_steps.sum())

    return work


def retrieval(d: int) -> Problem:
    return Problem(gamma=0.05, p=1, k=1, d=d, Delta=0.1, activation="square", spherical=True, m0=0.1)


def _committee(p: int, k: int, d: int = 1000) -> Problem:
    return Problem(gamma=0.1, p=p, k=k, d=d, Delta=0.1, activation="erf")


def _waiting(p: int, k: int, steps: int) -> Work:
    """Steps while an exit is waited for that does not come, as on a plateau: each asks for the risk."""
    return steps_of(_committee(p, k), "sgd_chain", 256, steps, thresholds=(1.0 - 1e-9,))


START = Overlaps([[1.0]], [[0.1]], [[1.0]])

BENCHMARKS = [
    Benchmark(
        "chain, projected square, p = 1, d = 10³",
        "a step",
        steps_of(retrieval(1000), "sgd_chain", 1024, 2000, START),
        floor=steps_of(retrieval(10_000_000), "sgd_chain", 1024, 2000, START),
        floor_is="the same at d = 10⁷",
        reach=30e-9,
    ),
    Benchmark("chain, erf, p = 4, k = 2", "a step", steps_of(_committee(4, 2), "sgd_chain", 256, 2000), reach=150e-9),
    Benchmark("chain, erf, p = 8, k = 4", "a step", steps_of(_committee(8, 4), "sgd_chain", 256, 1000), reach=400e-9),
    Benchmark("chain, erf, p = 4, k = 2, an exit waited for", "a step", _waiting(4, 2, 2000)),
    Benchmark("chain, erf, p = 8, k = 4, an exit waited for", "a step", _waiting(8, 4, 1000)),
]
