"""Closed forms of phase retrieval (rates, exit times, noise, risks), regimes of any network, optima of two Gaussians.

Every function takes numbers, numpy arrays or xarray DataArrays, broadcasts them, and returns the same kind.
"""

from sweeplib.networks.theory.exit_times import (
    annealed_exit_time,
    exact_exit_time,
    exact_optimal_learning_rate,
    first_passage_exit_time,
    noise_corrected_exit_time,
    noise_corrected_optimal_learning_rate,
    noise_corrected_survival,
    quenched_exit_time,
    quenched_survival,
)
from sweeplib.networks.theory.free_scales import (
    free_escape_rate,
    free_growth_factor,
    free_maximal_learning_rate,
    free_norm,
    free_optimal_learning_rate,
    trained_escape_rate,
    trained_optimal_learning_rate,
)
from sweeplib.networks.theory.learning_rates import (
    escape_rate,
    learnable_range,
    maximal_learning_rate,
    optimal_learning_rate,
    overparametrisation_gain,
    student_alignment_rate,
)
from sweeplib.networks.theory.regimes import (
    coupling_exponent,
    deviation_exponent,
    excess_risk_exponent,
    noise_weight_exponent,
    regime,
    steps_exponent,
)
from sweeplib.networks.theory.single_unit import (
    asymptotic_risk,
    fixed_point_overlap,
    norm_variance,
    overlap_norm_covariance,
    overlap_variance,
    spherical_noise_variance,
)
from sweeplib.networks.theory.two_gaussians import bayes_risk, least_network_risk

__all__ = [
    "annealed_exit_time",
    "asymptotic_risk",
    "bayes_risk",
    "coupling_exponent",
    "deviation_exponent",
    "escape_rate",
    "exact_exit_time",
    "exact_optimal_learning_rate",
    "excess_risk_exponent",
    "first_passage_exit_time",
    "fixed_point_overlap",
    "free_escape_rate",
    "free_growth_factor",
    "free_maximal_learning_rate",
    "free_norm",
    "free_optimal_learning_rate",
    "learnable_range",
    "least_network_risk",
    "maximal_learning_rate",
    "noise_corrected_exit_time",
    "noise_corrected_optimal_learning_rate",
    "noise_corrected_survival",
    "noise_weight_exponent",
    "norm_variance",
    "optimal_learning_rate",
    "overlap_norm_covariance",
    "overlap_variance",
    "overparametrisation_gain",
    "quenched_exit_time",
    "quenched_survival",
    "regime",
    "spherical_noise_variance",
    "steps_exponent",
    "student_alignment_rate",
    "trained_escape_rate",
    "trained_optimal_learning_rate",
]
