"""Spectral steps: along h(GGᵀ) G for the p x d gradient G, which changes its singular values and keeps its directions.

`spectral` has the polar factor of G, all of whose singular values are 1, or (GGᵀ + ℓ²)^(−1/2) G; `newton_schulz` the
five polynomials of Muon in its place. `spectral_momentum` and `muon` have the same of N ← β N + G, without velocity at
the start. With one unit, or one sample, the polar factor is G/‖G‖, as of `normalised`.
"""

import math
from typing import Annotated, Any

from pydantic import Field

from sweeplib.networks.problem.parameters import Parameters, parameter
from sweeplib.networks.problem.updates.heavy_ball import Persistence
from sweeplib.networks.problem.updates.normalised import LEAST
from sweeplib.networks.problem.updates.update import UPDATES, Update

RANK = 1e-12
"""Eigenvalues of GGᵀ below this part of the largest are those of directions that G does not have."""


class Ridge(Parameters):
    """The ridge ℓ of the singular values."""

    spectral_ridge: Annotated[float, Field(ge=0, allow_inf_nan=False)] = parameter(
        0.0, "ridge of spectral steps", r"\ell", 0.2
    )
    """ℓ ≥ 0 of the updates `spectral` and `spectral_momentum`: singular values s of G become s/√(s² + ℓ²); 0: 1."""


class RidgeAndPersistence(Ridge, Persistence):
    """The part β of a velocity that the next step keeps, and the ridge ℓ."""


def polar(numbers: Any, value: float, largest: float, total: float) -> float:
    """Return the factor (e + ℓ²)^(−1/2) of an eigenvector of GGᵀ, e its eigenvalue; without a ridge 0 beyond the rank.

    numbers : ℓ is the last. value : e. largest : the largest eigenvalue. It has no branch: loops are vectorised.
    """
    ridge = numbers[-1]
    counts = (value > RANK * largest) | (ridge > 0.0)
    return counts / math.sqrt(max(value + ridge * ridge, LEAST))


def polynomials(numbers: Any, value: float, largest: float, total: float) -> float:
    """Return the factor of an eigenvector of GGᵀ after five steps of Newton-Schulz from G/‖G‖, as Muon has them.

    It is Π g/√Σe with y = e/Σe, g = 3.4445 − 4.7750 y + 2.0315 y² and y ← y g², five times, e the eigenvalues.
    value : e. total : Σe.
    """
    y, factor = value / max(total, LEAST), 1.0 / math.sqrt(max(total, LEAST))
    for _ in range(5):
        g = 3.4445 - 4.7750 * y + 2.0315 * y * y
        factor, y = factor * g, y * g * g
    return factor


_POLAR, _MUON, _OF_N = "({0}{0}^T + \\ell^2)^{{-1/2}} {0}", "h({0}{0}^T) {0}", r",\ N \leftarrow \beta N + g"
UPDATES.add(Update("spectral", r"-\gamma " + _POLAR.format("g"), spectrum=polar, loss="absolute", parameters=Ridge))
UPDATES.add(Update("newton_schulz", r"-\gamma " + _MUON.format("g"), spectrum=polynomials))
for _name, _label, _spectrum, _parameters in (
    ("spectral_momentum", _POLAR, polar, RidgeAndPersistence),
    ("muon", _MUON, polynomials, Persistence),
):
    _text = r"-\gamma " + _label.format("N") + _OF_N
    UPDATES.add(Update(_name, _text, spectrum=_spectrum, has_velocities=True, parameters=_parameters))
