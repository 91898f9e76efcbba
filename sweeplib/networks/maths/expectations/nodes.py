"""The rules of integration of `quadrature` and `given_teacher`, as one array that compiled rules take apart."""

from functools import cache
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations import gauss
from sweeplib.networks.numerics.compiled import inlined

RULES = 4
"""The number of rules in `Rules`."""

NO_RULE: gauss.Rule = ((0.0,), (1.0,))
"""In place of a rule that is not needed."""

MOST_AXES = 3
"""The largest number of fields λ* with equally spaced nodes, which need no rule (`lines`)."""
MOST_NODES = 4096
"""About the number of nodes for more fields."""


class Rules(NamedTuple):
    """Nodes and weights (2, nodes).

    `teacher` and `student` are rules for λ* and for students given λ*, which `given_teacher` needs, `panel` is one of
    an interval, and `plane` one with fewer nodes for intervals in two directions.
    """

    teacher: Array
    student: Array
    panel: Array
    plane: Array


@inlined
def rule_at(nodes: Array, number: int) -> Array:
    """The rule number `number` (2, nodes) of those that `packed` has packed in nodes."""
    first = RULES
    for before in range(number):
        first += 2 * int(nodes[before])
    count = int(nodes[number])
    return nodes[first : first + 2 * count].reshape((2, count))


@inlined
def rules_of(nodes: Array) -> Rules:
    """The four rules that `packed` has packed in nodes."""
    return Rules(rule_at(nodes, 0), rule_at(nodes, 1), rule_at(nodes, 2), rule_at(nodes, 3))


def packed(rules: tuple[gauss.Rule, ...]) -> Array:
    """The rules in one array: the number of nodes of each, then nodes and weights of the first, of the second, ..."""
    parts = [array for rule in rules for array in rule]
    return np.concatenate([[len(nodes) for nodes, _ in rules], *parts]).astype(float)


@cache
def nodes_of(finer: float, degree: int, k: int = 0) -> Array:
    """The rules in one array, with `finer` times as many nodes.

    degree : of polynomials, for which there are more. k : fields λ* of a target of any form, 0 without one.
    """
    rules = (
        gauss.normal(round(_nodes_of_teacher(k) * finer)) if k > MOST_AXES else NO_RULE,
        gauss.normal(round(12 + 12 * finer) + degree) if k else NO_RULE,
        gauss.legendre(round(8 + 8 * finer)),
        gauss.legendre(round(6 + 6 * finer)),
    )
    return packed(rules)


def _nodes_of_teacher(k: int) -> int:
    """The number of nodes for each of k fields: fewer for more fields."""
    return max(4, round(MOST_NODES ** (1.0 / k)))
