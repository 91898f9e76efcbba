"""The rules of integration of `quadrature` and `given_teacher`, as one array that compiled rules take apart."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sweeplib.maths.expectations import gauss
from sweeplib.numerics.compiled import inlined

Array = np.ndarray[Any, np.dtype[np.float64]]

RULES = 8
"""The number of rules in `Rules`."""

NO_RULE: gauss.Rule = ((0.0,), (1.0,))
"""In place of a rule that is not needed."""

MOST_AXES = 3
"""The largest number of fields λ* with equally spaced nodes, which need no rule (`lines`)."""
MOST_NODES = 4096
"""About the number of nodes for more fields."""


class Rules(NamedTuple):
    """Nodes and weights (2, nodes), and the number of Hermite polynomials.

    `teacher` and `student` are rules for λ* and for students given λ*, which `given_teacher` needs, `panel` is one of
    an interval.
    """

    angles: Array
    radii: Array
    line: Array
    inner: Array
    arc: Array
    teacher: Array
    student: Array
    panel: Array
    orders: int


@inlined
def rule_at(nodes: Array, number: int) -> Array:
    """Rule number `number` (2, nodes) of those that `packed` has packed."""
    first = RULES + 1
    for before in range(number):
        first += 2 * int(nodes[before])
    count = int(nodes[number])
    return nodes[first : first + 2 * count].reshape((2, count))


@inlined
def rules_of(nodes: Array) -> Rules:
    """The rules that `packed` has packed."""
    return Rules(
        rule_at(nodes, 0),
        rule_at(nodes, 1),
        rule_at(nodes, 2),
        rule_at(nodes, 3),
        rule_at(nodes, 4),
        rule_at(nodes, 5),
        rule_at(nodes, 6),
        rule_at(nodes, 7),
        int(nodes[RULES]),
    )


def packed(rules: tuple[gauss.Rule, ...], orders: int) -> Array:
    """The number of nodes of each rule, that of Hermite polynomials, then nodes and weights."""
    parts = [part for rule in rules for part in rule]
    return np.concatenate([[len(nodes) for nodes, _ in rules], [orders], *parts]).astype(float)


@cache
def nodes_of(finer: float, degree: int, k: int = 0) -> Array:
    """The rules, of `finer` times as many nodes, and more for polynomials of high degree; those given λ* for k > 0."""

    def count(least: float, more: float) -> int:
        return round(least + more * finer) + degree

    rules = (
        gauss.legendre(count(0, 12)),
        gauss.rayleigh(count(6, 8)),
        gauss.half_normal(count(12, 12)),
        gauss.trapezoidal(round(17 + 24 * finer), 0.6 - 0.15 * finer),
        gauss.legendre(round(10 * finer)),
        gauss.normal(round(_nodes_of_teacher(k) * 0.5 * (1.0 + finer))) if k > MOST_AXES else NO_RULE,
        gauss.normal(count(12, 12)) if k else NO_RULE,
        gauss.legendre(round(8 + 8 * finer)),
    )
    return packed(rules, count(8, 16))


def _nodes_of_teacher(k: int) -> int:
    """The number of nodes for each of k fields: fewer for more fields."""
    return max(4, round(MOST_NODES ** (1.0 / k)))
