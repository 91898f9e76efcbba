"""Which rule serves which pair of activations, how accurate it says that it is, and how long it takes, as a table."""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.odes import called, committee
from sweeplib.networks.maths.expectations.addresses import drifts_address
from sweeplib.networks.maths.expectations.system import System, empty_drifts
from sweeplib.networks.problem import Problem
from sweeplib.networks.problem.problem import problem_expectations

PAIRS = (
    ("square", "square"), ("he3", "he3"), ("square", "lam1*lam2"), ("erf", "erf"), ("erf", "sigmoid"), ("tanh", "tanh"),
    ("relu", "relu"), ("relu", "erf"), ("tanh", "he3"), ("tanh", "lam1*lam2"), ("relu", "lam1*lam2"),
    ("tanh", "tanh(lam1*lam2)"), ("relu", "tanh(lam1*lam2)"), ("tanh", "lam1*relu(lam2)"), ("relu", "lam1*relu(lam2)"),
    ("piecewise(-2, -1, -1, -1, 1, 1, 2, 1)", "relu"),
)  # fmt: skip
"""Students, each with the activation of a teacher of two units or with a formula of its fields."""
SECONDS = 0.3
"""Seconds for which a call is repeated."""


def seconds_of(work: Callable[[int], object]) -> float:
    """Return the seconds of processor time of one of many calls, the least of three tries."""
    work(1)
    calls, least = 1, np.inf
    for _ in range(3):
        while True:
            started = time.process_time()
            work(calls)
            if (taken := time.process_time() - started) > SECONDS / 3:
                break
            calls *= 2
        least = min(least, taken / calls)
    return float(least)


def home(rule: Callable[..., object]) -> str:
    """Return the file in which a rule is, without its ending."""
    return rule.__module__.rpartition(".")[2]


def row(student: str, teacher: str, p: int = 2, k: int = 2) -> list[str]:
    """Return the cells of a pair: rule, errors as stated of R and the drifts, and the microseconds of each."""
    formula = "lam" in teacher
    target = {"target": teacher} if formula else {"teacher_activation": teacher}
    problem = Problem(gamma=0.1, p=p, k=k, d=2000, Delta=1e-3, activation=student, **target)
    rule, (Q, M, P) = problem_expectations(problem), (np.array(part, order="C") for part in committee(p, k))
    a, a_star = np.ones(p), np.ones(k)
    many = [np.repeat(part[None], 64, axis=0) for part in (Q, M, P, a, a_star)]
    risks = rule.risks(*many)
    errors = [float(rule.risk_errors(risks, *many)[0] / risks[0])]
    cells, drifts = [home(rule.risk), home(rule.drifts)], drifts_address(rule.drifts)
    one = [part[:1] for part in many]
    times = [seconds_of(lambda calls: [rule.risks(*many) for _ in range(calls)]) / 64]
    for stretch in (0.0, 1.0):
        if not rule.resolved:
            break
        errors.append(float(rule.drift_errors(*one, np.array([1e-3]), stretch=stretch)[0]))
        system, out = System(Q, M, P, a, a_star, 1e-3, stretch, rule.pair), empty_drifts(p, k)
        times.append(seconds_of(lambda calls, s=system, o=out: called(drifts, calls, s, o)))
    refused = ["refused"] * (3 - len(errors))
    cells += ["exact" if error == 0.0 else f"{error:.0e}" for error in errors] + refused
    return cells + [f"{float(f'{1e6 * seconds:.2g}'):,g}" for seconds in times] + refused


def main() -> None:
    """Print the table for two students and two teacher units at overlaps of random weights."""
    titles = ["student", "teacher", "rule of R", "rule of Ψ", "error of R", "of Ψ", "with Ψ^Var"]
    titles += ["R (µs)", "Ψ (µs)", "with Ψ^Var (µs)"]
    print("|", " | ".join(titles), "|")
    print("|", " | ".join(["---"] * len(titles)), "|")
    for student, teacher in PAIRS:
        print("|", " | ".join([student, teacher, *row(student, teacher)]), "|", flush=True)


if __name__ == "__main__":
    main()
