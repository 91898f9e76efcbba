"""The information exponent of each problem of a dataset, and the law of its steps where theory has one."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.analysis.growth_laws import rate_exponent
from sweeplib.analysis.labels import labelled
from sweeplib.analysis.problem_fields import field, one_pass_committee
from sweeplib.errors import SweeplibError
from sweeplib.maths.activations import activation
from sweeplib.maths.hermite import pair_information_exponent

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.storage.outline import Outline

ON_THE_SPHERE = (1.0,)
ANY_NORM = (0.7, 1.3)
"""Variances of the field of a unit on the sphere, and two of one off it: a coefficient zero at both is zero at all."""
ROUNDING = 1e-6
COMMITTEE = "committee"
"""The target whose information exponent is that of the pair of activations."""
UNNAMED = ("", "None")
"""Of a teacher with the activation of the student."""


def information_exponents(ds: xr.Dataset) -> xr.DataArray:
    """The lowest order at which both student and teacher have a Hermite coefficient, along what they vary along.

    Of students off the sphere coefficients change with their norm, and count where they do not vanish at every one:
    σ = h₃ has a linear part at any norm but 1. NaN for another target than the committee, for an activation that is not
    known, for a pair without a common order, and for a Gaussian teacher whose norm, off 1 by O(1/√d), makes the order
    depend on d.

    With k > 1 units of the teacher it is the order by which students leave the start, whatever the directions of the
    teacher that they then find; how these are told apart after that is another matter.
    """
    import xarray as xr

    student = field(ds, "activation")
    teacher = field(ds, "teacher_activation", "")
    named = student.where(teacher.isin(UNNAMED), teacher)
    spherical, law = field(ds, "spherical", False).astype(bool), field(ds, "teacher_start", "orthogonal")
    exponent = xr.apply_ufunc(_exponent, student, named, spherical, law, vectorize=True, output_dtypes=[float])
    exponent = exponent.where(field(ds, "target", COMMITTEE) == COMMITTEE)
    return labelled(exponent, "information exponent of student and teacher", r"\kappa")


def largest_exponent(ds: Outline) -> float:
    """The largest information exponent of the problems of a dataset, from its outline; NaN where none is known."""
    fields = {"activation": "", "teacher_activation": "", "spherical": False, "teacher_start": "orthogonal"}
    values = [ds.axes.get(name, [ds.attrs.get(name, default)]) for name, default in fields.items()]
    known = [
        _exponent(student, student if teacher in UNNAMED else teacher, bool(spherical), law)
        for student, teacher, spherical, law in product(*values)
    ]
    targets = ds.axes.get("target", [ds.attrs.get("target", COMMITTEE)])
    return float(np.fmax.reduce(known)) if COMMITTEE in targets else np.nan


def expected_laws(ds: xr.Dataset) -> xr.DataArray:
    """The information exponent κ where its law of the steps is to be expected, else NaN.

    That is for starts of overlap ∝ 1/√d, as random ones are, for widths that do not depend on d, and for learning rates
    that do not for κ ≤ 2 and fall as d^−(κ−2)/2 for κ ≥ 3.
    """
    import xarray as xr

    exponent = information_exponents(ds)
    log_d = xr.ufuncs.log(ds["d"].astype(float))
    rate = xr.ufuncs.log(field(ds, "gamma")) + xr.apply_ufunc(rate_exponent, exponent) * log_d
    start = field(ds, "m0", np.nan)
    far = xr.ufuncs.log(abs(start).where(start != 0.0)) + 0.5 * log_d
    holds = (
        one_pass_committee(ds)
        & _same(rate)
        & (start.isnull() | _same(far))
        & _same(field(ds, "p"))
        & _same(field(ds, "k"))
    )
    holds = holds.all("d") if "d" in holds.dims else holds
    return labelled(exponent.where(holds), "information exponent whose law is expected", r"\kappa")


def _same(values: xr.DataArray) -> xr.DataArray:
    """Where values do not depend on d."""
    return values.max("d") - values.min("d") < ROUNDING if "d" in values.dims else values.notnull()


@cache
def _exponent(student: str, teacher: str, spherical: bool, law: str) -> float:
    norms = ON_THE_SPHERE if spherical else ANY_NORM
    found = {_of_pair(str(student), str(teacher), norms, of) for of in _teacher_norms(law)}
    return found.pop() if len(found) == 1 else np.nan


def _teacher_norms(law: str) -> tuple[tuple[float, ...], ...]:
    return (ON_THE_SPHERE, ANY_NORM) if law == "gaussian" else (ON_THE_SPHERE,)


def _of_pair(student: str, teacher: str, norms: tuple[float, ...], of_teacher: tuple[float, ...]) -> float:
    try:
        pair = activation(student), activation(teacher)
        return float(pair_information_exponent(*pair, student_variances=norms, teacher_variances=of_teacher))
    except SweeplibError:
        return np.nan
