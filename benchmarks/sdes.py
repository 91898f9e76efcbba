"""The SDE, per replica and step, compared to the chain in the same run."""

from benchmarks.chain import steps_of
from benchmarks.timing import Benchmark
from sweeplib import Problem


def _retrieval(p: int) -> Problem:
    return Problem(gamma=0.05 * p, p=p, k=1, d=3000, Delta=0.1, activation="square", spherical=True, m0=0.1)


def _committee(activation: str, p: int, k: int) -> Problem:
    gamma = {"he3": 0.01}.get(activation, 0.1) * p
    return Problem(gamma=gamma, p=p, k=k, d=1000, Delta=0.1, activation=activation)


def _beside_the_chain(name: str, problem: Problem, steps: int, reach: float | None = None) -> Benchmark:
    work, floor = (steps_of(problem, dynamics, 256, steps) for dynamics in ("sde", "sgd_chain"))
    return Benchmark(f"SDE, {name}", "a step", work, floor=floor, floor_is="the chain", reach=reach)


BENCHMARKS = [
    _beside_the_chain("projected square, p = 1", _retrieval(1), 200, 60e-9),
    _beside_the_chain("projected square, p = 4", _retrieval(4), 40, 600e-9),
    _beside_the_chain("erf, p = k = 1", _committee("erf", 1, 1), 100),
    _beside_the_chain("erf, p = 4, k = 2", _committee("erf", 4, 2), 40),
    _beside_the_chain("he3, p = k = 1", _committee("he3", 1, 1), 100),
    _beside_the_chain("relu, p = k = 1", _committee("relu", 1, 1), 40),
]
