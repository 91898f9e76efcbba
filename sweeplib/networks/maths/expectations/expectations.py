"""Expectations of a pair of activations, and the families of pairs that compute them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, Protocol

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.registry import Registry
from sweeplib.networks.maths.activations import Activation, activation
from sweeplib.networks.maths.expectations import addresses
from sweeplib.networks.maths.expectations.system import Drifts, Pair, System, copy_lane, drifts_room
from sweeplib.networks.numerics.binding import bound, unbound
from sweeplib.networks.numerics.compiled import inlined, without_references
from sweeplib.networks.numerics.vectors import WIDTH, vectors

DriftsOf = Callable[["Expectations", System, int], Drifts]
"""A function (rule, system, i) that returns other drifts of system number i than the rule has."""

FINER = 1.0, 1.5, 2.0
"""How many times as many nodes in a direction the rules of quadrature have: the usual one, and finer ones."""
AT_KINKS, SLOW = 2.0, 3.0
"""At least the error of a rule over its difference to 1.5 times as many nodes, where it falls as the inverse of their
square, at kinks that nodes do not meet, and of their number, when steep."""
RESOLVED = 1e-9
"""The largest difference of two rules for a risk after which no third one is asked."""
CHANCE = 5.0
"""The error of a risk over the spread of three rules, and of drifts by few Gauss nodes over the difference of two."""


class Risks(Protocol):
    """What gives the population risk of overlaps, and its errors."""

    def risks(self, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
        """The population risk of n systems (n,): Q (n, p, p), M (n, p, k), P (n, k, k), a (n, p), a_star (n, k)."""
        ...

    def risk_errors(self, risks: Array, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
        """The errors (n,) of these `risks`, of quadrature or, for closed forms, of the forms."""
        ...


@dataclass(frozen=True)
class Expectations:
    """Expectations over the fields (λ, λ*) ~ N(0, Ω), Ω = [[Q, M], [Mᵀ, P]], for one pair of activations.

    With E = f* + √Δ z − f, f = (1/p) Σ a_i σ(λ_i), f* = (1/k) Σ a*_r σ*(λ*_r):

    `risk(pair, Q, M, P, a, a_star, out)` fills `out` with ½ E[(f* − f)²]. The last axis of every array counts
    independent systems (lanes): Q (p, p, n), M (p, k, n), P (k, k, n), a (p, n), a_star (k, n), out (n,).
    A lane's value never depends on the others.

    `drifts(system, out)` fills the `Drifts` of one `System`: Ψ^M_ir = a_i E[σ'(λ_i) λ*_r E],
    Ψ^GF_ij = a_i E[σ'(λ_i) λ_j E] + (i ↔ j), Ψ^Var_ij = a_i a_j E[σ'(λ_i) σ'(λ_j) E²] at Ω times `stretch`, label noise
    included (arXiv 2302.05882, eqs. 8 to 10), and Ψ^a_i = E[σ(λ_i) E]. With `stretch` 0 it may leave out Ψ^Var, by far
    the longest to compute.

    `in_lanes(filled, system, out)` fills the drifts of many systems, the last axis of every array. Systems after the
    first `filled` are copies, whose drifts need not be filled. A system's drifts never depend on the others. If it is
    None, `drifts` is called for one system after another.

    All are compiled functions, or plain Python that numba compiles, without calls to other Python functions. A rule for
    many systems is made of that for one by `in_vectors`.

    functions : returns what rules by quadrature need to know of the activations, the `pair`.
    finer : the same by a finer rule, to estimate errors; None for closed forms, and the finest of the rules.
    wide : the number of student units from which calling `drifts` in turn is faster than `in_lanes`.
    lipschitz : a bound of |σ'| of the student, if known.
    resolved : whether the drifts are accurate. Dynamics and observables that use drifts are refused otherwise.
    misfits : the largest errors of the forms of student and teacher that the rules take for their values.
    slope_misfit : that of the form of the student's slope.
    margin : at least the error of the drifts over their difference to the finer rule.
    """

    name: str
    risk: Callable[..., None]
    drifts: Callable[..., None]
    in_lanes: Callable[..., None] | None = None
    functions: Callable[[], Pair] = addresses.no_functions
    finer: "Expectations | None" = None
    wide: float = math.inf
    lipschitz: float = math.inf
    resolved: bool = True
    misfits: tuple[float, float] = (0.0, 0.0)
    slope_misfit: float = 0.0
    margin: float = AT_KINKS

    @property
    def exact(self) -> bool:
        """Whether neither risks nor drifts have an error but rounding; risks alone may have none beside `finer`."""
        return self.finer is None and not any(self.misfits)

    @cached_property
    def pair(self) -> Pair:
        """The first argument of `risk`, and the `pair` of a system."""
        return self.functions()

    def of_many(self, p: int) -> tuple[Callable[..., None], Callable[..., None]]:
        """The rule for the drifts of many systems of p student units, and the rule for one system that it calls.

        From `wide` units on one system after another is faster. Where the rule for many calls none, the rule for one
        does nothing.
        """
        if self.in_lanes is None or p >= self.wide:
            return drifts_in_turn, self.drifts
        return self.in_lanes, addresses.no_drifts

    def risks(self, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
        """The population risk of n systems (n,): Q (n, p, p), M (n, p, k), P (n, k, k), a (n, p), a_star (n, k)."""
        return addresses.risks(self.pair, self.risk, Q, M, P, a, a_star)

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
    def risk_errors(self, risks: Array, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
        """The errors (n,) of the `risks` of n systems; for closed forms the errors of the forms.

        Twice the difference to the finer rule, if this is small. Else the functions have kinks or jumps between nodes,
        and two grids, or three, may agree by chance: several times the spread of the risks by three rules.
        """
        systems, finer = (Q, M, P, a, a_star), self.finer
        if finer is None:
            return self.form_errors(risks, a, a_star)
        fine = finer.risks(*systems)
        errors = AT_KINKS * np.abs(fine - risks)
        rough = np.flatnonzero(errors > RESOLVED)
        if finer.finer is not None and rough.size:
            third = finer.finer.risks(*(array[rough] for array in systems))
            errors[rough] = CHANCE * np.ptp([risks[rough], fine[rough], third], axis=0)
        return np.asarray(errors)

    def form_errors(self, risks: Array, a: Array, a_star: Array) -> Array:
        """The errors (n,) of the `risks` of n systems where f and f* are off by up to the `misfits`: E|E| ε + ½ ε²."""
        off = self.label_misfits(a, a_star)
        return np.asarray(np.sqrt(2.0 * np.abs(risks)) * off + 0.5 * off * off)

    def label_misfits(self, a: Array, a_star: Array) -> Array:
        """The largest errors (n,) of f* − f of n systems because of the `misfits`; a (n, p), a_star (n, k)."""
        of_student, of_teacher = (
            misfit * np.abs(layer).mean(axis=1) for misfit, layer in zip(self.misfits, (a, a_star), strict=True)
        )
        return np.asarray(of_student + of_teacher)

    def drifts_of(self, system: System) -> Drifts:
        """The drifts of one system."""
        return addresses.drifts_of(self.drifts, system._replace(pair=self.pair))

    def drifts_of_many(self, system: System) -> Drifts:
        """The drifts of many systems, the last axis of every array."""
        return addresses.lane_drifts_of(*self.of_many(system.M.shape[0]), system._replace(pair=self.pair))

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
    def drift_errors(
        self, Q: Array, M: Array, P: Array, a: Array, a_star: Array, Delta: Array,
        *, stretch: float = 1.0, drifts_of: DriftsOf | None = None,
    ) -> Array:  # fmt: skip
        """The error (n,) of the drifts of n systems, relative to the largest drift; 0 for exact closed forms.

        It is the `margin` times the largest difference to the finer rule, and a bound of what the forms of activations
        are off.
        Q (n, p, p), M (n, p, k), P (n, k, k), a (n, p), a_star (n, k), Delta (n,) : the systems.
        stretch : the factor of Ω in Ψ^Var; 0 if errors of Ψ^Var do not count.
        drifts_of : makes other drifts of system number i, by a rule, in place of the drifts of the rule.
        """
        errors, drifts = np.empty(len(M)), drifts_of or (lambda rule, system, _: rule.drifts_of(system))
        for i, system in enumerate(map(System, Q, M, P, a, a_star, Delta, np.full(len(M), stretch))):
            coarse, fine = (_flat(drifts(rule, system, i), stretch != 0.0) for rule in (self, self.finer or self))
            off = self.margin * np.abs(fine - coarse).max() + self._drift_form_error(system, varies=stretch != 0.0)
            errors[i] = off / max(np.abs(fine).max(), np.finfo(float).tiny)
        return errors

    def _drift_form_error(self, system: System, *, varies: bool) -> float:
        """A bound of the errors of the drifts of a system where σ, σ' and f* − f are off by up to their misfits.

        varies : whether Ψ^Var counts. |E| has the root mean square √(2R + Δ), c_i = a_i σ'_i E the bound |a_i| |σ'|
        |E|; fields have their variances.
        """
        if not (any(self.misfits) or self.slope_misfit):
            return 0.0
        Q, M, P, a, a_star, Delta = system[:6]
        risk = self.risks(Q[None], M[None], P[None], a[None], a_star[None])[0]
        displacement, off = math.sqrt(2.0 * abs(risk) + Delta), self.label_misfits(a[None], a_star[None])[0]
        largest, field = np.abs(a).max(), math.sqrt(max(np.diagonal(Q).max(), np.diagonal(P).max(initial=0.0)))
        of_c = largest * (self.slope_misfit * displacement + self.lipschitz * off)
        of_layer = self.misfits[0] * displacement + self.lipschitz * field * off
        of_variance = 2.0 * largest * self.lipschitz * displacement * of_c if varies else 0.0
        return float(max(2.0 * field * of_c, of_layer, of_variance))


def refined(rule: Expectations, pair: Callable[[float], Pair]) -> Expectations:
    """The rule with the functions `pair(1.0)`, and finer ones with those for more nodes, one the `finer` of another."""
    for finer in reversed(FINER):
        rule = replace(rule, functions=partial(pair, finer), finer=rule if finer < FINER[-1] else None)
    return rule


def _flat(drifts: Drifts, with_variance: bool) -> Array:
    """The entries (n,) of drifts, of Ψ^Var only `with_variance`."""
    used = drifts if with_variance else (drifts.M, drifts.GF, drifts.a)
    return np.concatenate([drift.ravel() for drift in used])


@dataclass(frozen=True)
class Family:
    """Pairs of activations whose expectations are computed by the same formulas.

    `pair_expectations(student, teacher)` returns their expectations, or None for a pair outside the family. Where
    several families have a pair, the one of the lowest `generality` is used.
    """

    name: str
    generality: int
    pair_expectations: Callable[[Activation, Activation], Expectations | None]


FAMILIES: Registry[Family] = Registry("family of expectations")
"""The families of the modules of this folder and of plugins, by name."""


def expectations(student: str, teacher: str | None = None) -> Expectations:
    """The expectations of a student's and a teacher's activation, by name.

    The teacher's is the student's by default.
    """
    return _expectations(student, teacher or student)


@cache
def _expectations(student: str, teacher: str) -> Expectations:
    """Return the expectations of a pair of activations, by the least general family that has them."""
    pair = activation(student), activation(teacher)
    families = sorted(FAMILIES.values(), key=lambda family: family.generality)
    return next(pair_rule for family in families if (pair_rule := family.pair_expectations(*pair)) is not None)


def no_arrays(p: int, k: int, pair: Pair, number: Any) -> tuple[()]:
    """No work arrays, for rules that need none; its arguments are those of all such functions."""
    return ()


def in_vectors(drifts: Callable[..., None], arrays: Callable[..., tuple[Any, ...]] = no_arrays) -> Callable[..., None]:
    """The rule for the drifts of many systems by that for one, `drifts(system, out, *arrays)`.

    It is compiled for vectors of systems (`numerics.vectors`), so that it must choose nothing by the numbers of a
    system, and allocate nothing: `arrays(p, k, pair, number)` returns its work arrays, with `room` for such numbers.
    """
    fill = without_references(bound(_fill_vectors, drifts=without_references(drifts)))
    return bound(_fill_lanes, fill=fill, arrays=inlined(arrays))


drifts = arrays = fill = unbound
"""Bound by `in_vectors`."""


def _fill_lanes(filled: int, system: System, out: Drifts) -> None:
    """Set `out` to the drifts of the first `filled` lanes by the bound `fill`, with bound `arrays` for these widths."""
    p, k, _ = system.M.shape
    fill(filled, system, out, arrays(p, k, system.pair, vectors(system.Delta, 0)))


def _fill_vectors(filled: int, system: System, out: Drifts, work: tuple[Any, ...]) -> None:
    """Set `out` to the bound `drifts` of the first `filled` lanes, `WIDTH` lanes at a time as entries of vectors."""
    for lane in range(0, filled, WIDTH):
        Q, M, P = vectors(system.Q, lane), vectors(system.M, lane), vectors(system.P, lane)
        a, a_star = vectors(system.a, lane), vectors(system.a_star, lane)
        Delta, stretch = vectors(system.Delta, lane), vectors(system.stretch, lane)
        views = Drifts(vectors(out.M, lane), vectors(out.GF, lane), vectors(out.Var, lane), vectors(out.a, lane))
        drifts(System(Q, M, P, a, a_star, Delta, stretch, system.pair, None), views, *work)


def drifts_in_turn(filled: int, system: System, out: Drifts) -> None:
    """Fill the drifts of the first `filled` systems, one after the other, by the rule for one, `system.drifts`.

    For families without a rule in lanes: the rule is called by its address, so that this loop is compiled once for all.
    """
    p, k, _ = system.M.shape
    Q, M, P = np.empty((p, p)), np.empty((p, k)), np.empty((k, k))
    a, a_star, drifts = np.empty(p), np.empty(k), drifts_room(p, k)
    for lane in range(filled):
        copy_lane(lane, system.Q, Q)
        copy_lane(lane, system.M, M)
        copy_lane(lane, system.P, P)
        for i in range(p):
            a[i] = system.a[i, lane]
        for r in range(k):
            a_star[r] = system.a_star[r, lane]
        single = System(Q, M, P, a, a_star, system.Delta[lane], system.stretch[lane], system.pair, None)
        system.drifts(single, drifts)
        for i in range(p):
            out.a[i, lane] = drifts.a[i]
            for j in range(p):
                out.GF[i, j, lane] = drifts.GF[i, j]
                out.Var[i, j, lane] = drifts.Var[i, j]
            for r in range(k):
                out.M[i, r, lane] = drifts.M[i, r]
