"""The diffusion that one-pass SGD follows at large d, with the corrections to it of the next order in 1/d.

dΩ = Ψ(Ω) dt + √T σ(Ω) dB, T = γ/(pd), σσᵀ = Cov of the increment of an SGD step over T (arXiv 2305.18502, eq. 21), for
any activations, widths and second layer, projected for spherical students. Integrated by the Euler-Maruyama method, of
weak order 1.

The mean of a step is SGD's to relative order 1/d: E[‖x‖² c_i c_j] is Ψ^Var at Ω times 1 + 2/d, and spherical students
are divided by their norms after the step, noise included, which yields Itô's terms. The noise is a sum over a few fresh
samples of their increments minus the mean, each times a Gaussian number. Its covariance is σσᵀ without bias, and its
third cumulants are those of SGD steps. A step that violates Ω ≥ 0 is reflected.

With batches of n_b samples, the factor γ of ‖x‖² c_i c_j is γ/n_b. The noise has the covariance of one sample's
increment over n_b, and its third cumulants over n_b². The products of different samples of a batch add
T² (1 − 1/n_b) E[c uᵀ] E[c uᵀ]ᵀ to the mean step of Q, with u the coordinates of a sample in the frame of all weights.
This term is estimated without bias from pairs of the samples of the noise.

With a schedule, γ is γ ξ(t) in T of the mean and the noise and in the factor of ‖x‖² c_i c_j: in the time of the rate
γ, dΩ = (ξ Ψ^GF + ξ² (γ/(p n_b)) Ψ^Var) dt + ξ √T σ dB for Q, with γ ξ in σ. Labels have the noise Δ χ(t).

With decays, s = λT, a step of SGD takes w to (1 − s) w + (γ/p) c x: the mean step of M is T (Ψ^M − λM), that of Q
T [(1 − s) Ψ^GF + (γ/p) Ψ^Var − (2 − s) λQ], and X_Q has (1 − s) λ in place of λ. Decay itself does not fluctuate. Noise
of the weights at the temperature T_w adds 2 T_w I to the drift of Q, and √(2 T_w T/d) (N Lᵀ + L Nᵀ), N of N(0, 1)
entries, to a step of Ω = L Lᵀ. By the correlation loss y takes the place of E; other losses have no drifts in closed
form at Ω (1 + 2/d).
"""

import math

import numpy as np
from pydantic import Field

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.dynamics.dynamics import DECAYS, DYNAMICS, NumericalOptions
from sweeplib.networks.dynamics.lane_dynamics import LaneDynamics, rows, unrolled
from sweeplib.networks.dynamics.ode_limits import closed_losses
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.dynamics.step_dynamics import functions_of
from sweeplib.networks.kernels.factors import reflection
from sweeplib.networks.kernels.lanes import round_of
from sweeplib.networks.kernels.sde import Settings, sde_network, sde_prepare, sde_step, sde_work
from sweeplib.networks.kernels.weight_noise import noisy
from sweeplib.networks.kernels.weight_noise_of_overlaps import OF_OVERLAPS
from sweeplib.networks.maths.overlaps import on_sphere, teacher_factors
from sweeplib.networks.problem import TAILS, Limit, Problem


class SdeOptions(NumericalOptions):
    """Options of the SDE.

    step : length of a step in SGD steps; a record between two steps is at the end of a shorter one.
    samples : number of samples in the noise of a step.
    """

    step: float = Field(default=1.0, gt=0, le=1e6)
    samples: int = Field(default=2, ge=1, le=1024)


def _closed(_: Problem) -> str:
    """What is expected of the loss, for the message of the limit."""
    return f"one of {closed_losses()} in sde; or sgd, sgd_chain, ode"


class Sde(LaneDynamics):
    """Replicas of the diffusion: the state is Q, M and a; exits are at the resolution of its own steps."""

    name = "sde"
    label = "SDE"
    uses_drifts = True
    cost_seconds = (2e-10, 0.0, 0.0)
    reads = LaneDynamics.reads | {"batch_size", "schedule", "noise_schedule", "loss", "temperature"} | DECAYS
    undefined = (
        ("repeats samples sampling", "its samples are fresh at each instant"),
        (" ".join(sorted(TAILS)), "its fluctuations have the fourth moment of Gaussian labels"),
    )
    limits = (Limit("loss", "no drifts at order 1/d", _closed, where=lambda problem: not problem.has_closed_drifts),)
    unaffected_by = frozenset({"times", "thresholds"})
    Options = SdeOptions
    options: SdeOptions

    def __init__(self, replicas: Replicas, options: SdeOptions) -> None:
        super().__init__(replicas, options)
        self.settings = self.settings_of(options.step)
        # the functions of the problem by address, and the compiled round of steps
        self.called = functions_of(replicas, replicas.equations.of_many(replicas.p))
        self.round = round_of(sde_work, prepare=sde_prepare, take_step=sde_step, fill_network=sde_network)
        if self.has_weight_noise:
            self.round = noisy(OF_OVERLAPS, sde_work, sde_step, spherical=False).round
        L_star = teacher_factors(replicas.P)
        Q, M = on_sphere(replicas.Q, replicas.M) if replicas.spherical else (replicas.Q, replicas.M)
        self.begin(np.concatenate([rows(array) for array in (Q, M, replicas.a)]), rows(L_star))

    @property
    def steps_a_round(self) -> int:
        """The largest number of steps of a round, smaller at large p: the clock is read after about the same work."""
        return max(1, super().steps_a_round // self.replicas.p**2)

    def settings_of(self, length: float) -> Settings:
        """The settings of a step of `length` SGD steps, with the factors of the samples of its noise (`multiplier`)."""
        replicas, samples = self.replicas, self.options.samples
        n_b = replicas.batch_size
        share, spread = (factor / n_b for factor in multiplier(n_b * length, samples))
        shape = replicas.p, replicas.k, replicas.spherical, replicas.trains_second_layer
        numbers = replicas.numbers
        decays = bool((numbers.weight_decay + numbers.second_layer_decay + numbers.temperature > 0.0).any())
        return Settings(*shape, length, samples, share, spread, n_b, decays, reflection())

    def observe(self, state: Array) -> None:
        """Set Q, M and a to the parts of the states (rows, n)."""
        p, k = self.replicas.p, self.replicas.k
        self.Q, self.M = unrolled(state[: p * p], p, p), unrolled(state[p * p : p * (p + k)], p, k)
        self.a = unrolled(state[p * (p + k) :], p)

    @staticmethod
    def step_length(problem: Problem | Replicas, options: NumericalOptions) -> float:
        """The number of SGD steps in a step of the SDE: the option `step`."""
        return options.step if isinstance(options, SdeOptions) else 1.0

    @classmethod
    def check(cls, problem: Problem, options: NumericalOptions) -> None:
        """Raise InputError too for steps with a batch if the noise is that of one sample: there are no pairs."""
        super().check(problem, options)
        if problem.batch_size > 1 and isinstance(options, SdeOptions) and options.samples < 2:
            reason = "the noise of the sde has no pairs of samples"
            expected = "at least 2, for steps of SGD with a batch"
            raise InputError(reason, key="samples", value=options.samples, expected=expected)

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Return the number of steps to a time, times the work of the drifts, draws and products of one step."""
        width = problem.p + problem.k
        return time / problem.step_time() * (600.0 + 60.0 * width + 30.0 * problem.p * width**2)


def multiplier(step: float, samples: int) -> tuple[float, float]:
    """(α, β) of the factor η = α + β ξ, ξ ~ N(0, 1), of the increment minus its mean of each sample of the noise.

    step : length of the step in steps of one sample. samples : number of samples of the noise.
    The sum over the samples has the covariance and the third cumulants of `step` steps of one sample where E η² = r and
    E η³ = r, r = step/samples: α² + β² = r and 3 r α − 2 α³ = r, whose smallest root is α = √(2r) sin φ,
    sin 3φ = 1/√(2r). For r < ½ there is no root; 3φ = π/2 then gives the largest possible part of the third
    cumulants, √(2r).
    """
    ratio = step / samples
    root = math.sqrt(2.0 * ratio)
    share = root * math.sin(math.asin(min(1.0, 1.0 / root)) / 3.0)
    return share, math.sqrt(ratio - share * share)


DYNAMICS.register("sde", Sde)
