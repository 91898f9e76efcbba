"""The information exponent of each problem of a dataset, and the exponent whose law of the steps theory predicts.

It is the lowest order κ at which student and teacher both have a Hermite coefficient.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

from sweeplib.analysis.kit.problem_fields import TEACHER, field, one_pass_committee, same_at_all_d
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import SweeplibError
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.hermite import pair_information_exponent
from sweeplib.statistics.growth_laws import rate_exponent
from sweeplib.statistics.labelled import labelled

ON_THE_SPHERE = (1.0,)
ANY_NORM = (0.7, 1.3)
"""Variances of a unit's field: one on the sphere, two off it. A coefficient zero at both of these is zero at all."""
COMMITTEE = "committee"
"""The target whose information exponent is that of the pair of activations."""
UNNAMED = ("", "None")
"""Values of `teacher_activation` for a teacher with the activation of the student."""


def information_exponents(ds: xr.Dataset) -> xr.DataArray:
    """Return the lowest order at which student and teacher both have a Hermite coefficient, along the axes they vary.

    The coefficients of students off the sphere change with their norm; an order counts if its coefficient is not zero
    at every norm. For example, σ = h₃ has a linear part at any norm but 1. NaN for a target other than the committee,
    for an unknown activation, for a pair without a common order, and for a Gaussian teacher if its norm, which differs
    from 1 by O(1/√d), makes the order depend on d.

    With k > 1 teacher units it is the order with which students leave the start, in any direction of the teacher. It
    does not describe the later phase in which students separate the teacher's units.
    """
    student = field(ds, "activation")
    teacher = field(ds, "teacher_activation", "")
    named = student.where(teacher.isin(UNNAMED), teacher)
    spherical, law = field(ds, "spherical", False).astype(bool), field(ds, "teacher_start", "orthogonal")
    exponent = xr.apply_ufunc(_exponent, student, named, spherical, law, vectorize=True, output_dtypes=[float])
    exponent = exponent.where((field(ds, "target", COMMITTEE) == COMMITTEE) & (field(ds, "data", TEACHER) == TEACHER))
    return labelled(exponent, "information exponent of student and teacher", r"\kappa")


def largest_exponent(ds: Outline) -> float:
    """Return the largest information exponent of the problems of a dataset, from its outline; NaN if none is known."""
    fields = {"activation": "", "teacher_activation": "", "spherical": False, "teacher_start": "orthogonal"}
    values = [ds.axes.get(name, [ds.attrs.get(name, default)]) for name, default in fields.items()]
    exponents = [
        _exponent(student, student if teacher in UNNAMED else teacher, bool(spherical), law)
        for student, teacher, spherical, law in product(*values)
    ]
    targets = ds.axes.get("target", [ds.attrs.get("target", COMMITTEE)])
    laws = ds.axes.get("data", [ds.attrs.get("data", TEACHER)])
    return float(np.fmax.reduce(exponents)) if COMMITTEE in targets and TEACHER in laws else np.nan


def expected_laws(ds: xr.Dataset) -> xr.DataArray:
    """Return the information exponent κ where theory predicts its law of the steps, otherwise NaN.

    Theory needs start overlaps ∝ 1/√d (as random starts have), widths that do not depend on d, and learning rates that
    do not depend on d for κ ≤ 2 and are ∝ d^−(κ−2)/2 for κ ≥ 3.
    """
    exponent = information_exponents(ds)
    log_d = xr.ufuncs.log(ds["d"].astype(float))
    rate = xr.ufuncs.log(field(ds, "gamma")) + xr.apply_ufunc(rate_exponent, exponent) * log_d
    start = field(ds, "m0", np.nan)
    far = xr.ufuncs.log(abs(start).where(start != 0.0)) + 0.5 * log_d
    holds = (
        one_pass_committee(ds)
        & same_at_all_d(rate)
        & (start.isnull() | same_at_all_d(far))
        & same_at_all_d(field(ds, "p"))
        & same_at_all_d(field(ds, "k"))
    )
    holds = holds.all("d") if "d" in holds.dims else holds
    return labelled(exponent.where(holds), "information exponent whose law is expected", r"\kappa")


@cache
def _exponent(student: str, teacher: str, spherical: bool, law: str) -> float:
    """The information exponent of two activations by name; NaN if it depends on the teacher's norm, or is not known.

    spherical : whether students are on the sphere. law : that of the teacher's weights.
    """
    norms = ON_THE_SPHERE if spherical else ANY_NORM
    exponents = {_pair_exponent(str(student), str(teacher), norms, of_teacher) for of_teacher in _teacher_norms(law)}
    return exponents.pop() if len(exponents) == 1 else np.nan


def _teacher_norms(law: str) -> tuple[tuple[float, ...], ...]:
    """Return the sets of variances for which an exponent must agree, by the law of the teacher's weights."""
    return (ON_THE_SPHERE, ANY_NORM) if law == "gaussian" else (ON_THE_SPHERE,)


def _pair_exponent(student: str, teacher: str, norms: tuple[float, ...], of_teacher: tuple[float, ...]) -> float:
    """The information exponent of two activations by name; NaN if there is none.

    norms, of_teacher : the variances of the student's and of the teacher's field at which an order must vanish.
    """
    try:
        pair = activation(student), activation(teacher)
        return float(pair_information_exponent(*pair, student_variances=norms, teacher_variances=of_teacher))
    except SweeplibError:
        return np.nan
