"""A plugin for tests: the target f* = (1/k) Σ λ*_r, which has no activation and no second layer."""

from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.problem import TARGETS, Target


def fill(lam_star, a_star, out):
    for n in range(out.shape[0]):
        out[n] = lam_star[:, n].sum() / lam_star.shape[0]


def labels(teacher_activation):
    return fill


def of_student(activation, teacher_activation):
    """Those of a linear committee, for problems whose a* is 1, as all of this target are."""
    return expectations(activation, "linear")


TARGETS.register("mean", Target("mean", r"\overline{\lambda^*}", labels, of_student))
