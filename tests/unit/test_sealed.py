"""Tuples sealed in arrays: functions with an address see their fields, and callers are the same code for all."""

from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from sweeplib.networks.numerics.compiled import pointer, specialised
from sweeplib.networks.numerics.integrators.dop853 import Equations
from sweeplib.networks.numerics.packed_arguments import PACKED, packed, unpacker


class Inner(NamedTuple):
    matrix: Any
    shift: float


class Outer(NamedTuple):
    chosen: bool
    inner: Inner
    counts: Any
    none: Any


class Other(NamedTuple):
    factor: float
    line: Any


class Same(NamedTuple):
    factor: float
    line: Any


def opened(given):
    raise NotImplementedError


def of_outer(given, out):
    outer = opened(given)
    for i in range(len(out)):
        out[i] = outer.inner.matrix[i, -1] + outer.inner.shift + outer.counts[i] + (100.0 if outer.chosen else 0.0)
    outer.counts[0] += 7


def of_other(given, out):
    other = opened(given)
    for i in range(len(out)):
        out[i] = other.factor * other.line[i]


def called(function, given, out):
    function(given, out)


def call(template, value):
    """Return three numbers by a function with an address, which opens the value."""
    line = numba.types.Array(numba.types.float64, 1, "C")
    kind, out = numba.typeof(value), np.empty(3)
    function = pointer(template, numba.void(PACKED, line), opened=unpacker(kind))
    specialised(called)(function, packed(value, kind), out)
    return out.tolist()


@pytest.mark.rest
def test_fields_are_those_that_were_sealed_and_arrays_are_not_copied():
    counts = np.array([1, 2, 3])
    outer = Outer(True, Inner(np.arange(6.0).reshape(3, 2), 0.5), counts, None)
    assert call(of_outer, outer) == [102.5, 105.5, 108.5]
    assert counts.tolist() == [8, 2, 3]


@pytest.mark.rest
def test_callers_are_compiled_once_for_all_tuples():
    assert call(of_other, Other(2.0, np.ones(3))) == [2.0, 2.0, 2.0]
    assert call(of_outer, Outer(False, Inner(np.zeros((3, 1)), 0.0), np.zeros(3, np.int64), None)) == [0.0, 0.0, 0.0]
    assert len(specialised(called).signatures) == 1


def test_code_for_another_class_with_the_same_fields_is_another():
    kinds = [numba.typeof(one(1.0, np.ones(3))) for one in (Other, Same)]
    assert len({unpacker(kind).digest for kind in kinds}) == 2
    assert unpacker(numba.typeof(Other(3.0, np.zeros(1)))) is unpacker(kinds[0])


@pytest.mark.rest
def test_a_value_of_another_type_is_refused():
    """Compiled code would take one field for another."""
    with pytest.raises(TypeError, match="expected a value of the type"):
        packed(Other(1.0, np.ones(1)), numba.typeof(Same(1.0, np.ones(1))))


def slope(i, state, systems, work, out):
    out[0] = systems.factor * state[0]


@pytest.mark.rest
def test_equations_of_one_type_have_the_same_code():
    first, second = (Equations(slope, Other(factor, np.ones(1)), work=np.ones(1)) for factor in (1.0, 2.0))
    assert first.calls.slope_of is second.calls.slope_of
    assert Equations(slope, Same(1.0, np.ones(1)), work=np.ones(1)).calls.slope_of is not first.calls.slope_of
