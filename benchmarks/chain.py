"""The overlap chain, per replica and step, with 1024 replicas at once, as the driver runs them."""

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.timing import Benchmark, Work
from sweeplib import Overlaps, Problem
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of

STRETCHES = 50
"""So many stretches of steps are taken with the same replicas before they start again."""


def steps_of(
    problem: Problem,
    dynamics: str,
    replicas: int,
    steps: int,
    initial: Overlaps | None = None,
    thresholds: tuple[float, ...] = (),
    **options: float | str,
) -> Work:
    """Return work that takes the next steps with some replicas of a problem, and returns their number."""
    times = tuple(n * steps * problem.step_time() for n in range(1, STRETCHES + 1))
    recording = Recording(times, thresholds)
    given = tuple(sorted(options.items()))
    cases = [Case(problem, dynamics, seed, recording, options=given) for seed in range(replicas)]
    start = replicas_of(cases, initial)

    def stretches() -> Iterator[float]:
        while True:
            run = DYNAMICS[dynamics](start, cases[0].numerical_options())
            before = 0.0
            for to in range(STRETCHES):
                run.advance(to)
                taken = float(run.end_steps.sum())
                yield taken - before
                before = taken

    under_way = stretches()
    return lambda: next(under_way)


def retrieval(d: int) -> Problem:
    return Problem(gamma=0.05, p=1, k=1, d=d, Delta=0.1, activation="square", spherical=True, m0=0.1)


def _committee(p: int, k: int, d: int = 1000) -> Problem:
    return Problem(gamma=0.1, p=p, k=k, d=d, Delta=0.1, activation="erf")


def _waiting(p: int, k: int, steps: int) -> Work:
    """Return steps while an exit is pending that does not come, as on a plateau: each may need the risk."""
    return steps_of(_committee(p, k), "sgd_chain", 256, steps, thresholds=(1.0 - 1e-9,))


START = Overlaps([[1.0]], [[0.1]], [[1.0]])

BENCHMARKS = [
    Benchmark(
        "chain, projected square, p = 1, d = 10³",
        "a step",
        steps_of(retrieval(1000), "sgd_chain", 1024, 200, START),
        floor=steps_of(retrieval(10_000_000), "sgd_chain", 1024, 200, START),
        floor_is="the same at d = 10⁷",
        reach=30e-9,
    ),
    Benchmark("chain, erf, p = 4, k = 2", "a step", steps_of(_committee(4, 2), "sgd_chain", 256, 200), reach=150e-9),
    Benchmark("chain, erf, p = 8, k = 4", "a step", steps_of(_committee(8, 4), "sgd_chain", 256, 100), reach=400e-9),
    Benchmark(
        "chain, erf, p = 4, k = 2, batches of 1000",
        "a step",
        steps_of(replace(_committee(4, 2), batch_size=1000), "sgd_chain", 64, 20),
        reach=60e-6,
    ),
    Benchmark("chain, erf, p = 4, k = 2, an exit waited for", "a step", _waiting(4, 2, 200)),
    Benchmark("chain, erf, p = 8, k = 4, an exit waited for", "a step", _waiting(8, 4, 50)),
]
