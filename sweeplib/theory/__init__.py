"""Closed forms of phase retrieval: learning rates, exit times, noise, asymptotic risks.

Every function takes numbers, numpy arrays or xarray DataArrays, broadcasts them, and returns the same kind.
"""

from sweeplib.theory.asymptotics import asymptotic_risk, fixed_point_overlap
from sweeplib.theory.exit_times import (
    annealed_exit_time,
    exact_exit_time,
    noise_corrected_exit_time,
    noise_corrected_optimal_learning_rate,
    quenched_exit_time,
)
from sweeplib.theory.first_passage import first_passage_exit_time
from sweeplib.theory.increments import (
    norm_variance,
    overlap_norm_covariance,
    overlap_variance,
    spherical_noise_variance,
)
from sweeplib.theory.learning_rates import (
    escape_rate,
    learnable_range,
    maximal_learning_rate,
    optimal_learning_rate,
    overparametrisation_gain,
    student_alignment_rate,
)

__all__ = [
    "annealed_exit_time",
    "asymptotic_risk",
    "escape_rate",
    "exact_exit_time",
    "first_passage_exit_time",
    "fixed_point_overlap",
    "learnable_range",
    "maximal_learning_rate",
    "noise_corrected_exit_time",
    "noise_corrected_optimal_learning_rate",
    "norm_variance",
    "optimal_learning_rate",
    "overlap_norm_covariance",
    "overlap_variance",
    "overparametrisation_gain",
    "quenched_exit_time",
    "spherical_noise_variance",
    "student_alignment_rate",
]
