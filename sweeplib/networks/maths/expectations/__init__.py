"""Gaussian expectations of up to four local fields: one family of pairs of activations per file.

`expectations` says what a rule computes, `system` its arguments. Families with closed forms: `error_functions`,
`polynomials`, `relu`, `square`; by quadrature any others, `quadrature` (with `products`, `conditional`, `hinges`) and,
for targets of any form, `given_teacher` (with `lines`, `hinge_pairs`, `smooth_pairs`, `student_pairs`).
"""

from sweeplib.engine.base.registry import import_modules
from sweeplib.networks.maths.expectations.expectations import FAMILIES, SLOW, Expectations, Family, Risks, expectations

__all__ = ["FAMILIES", "SLOW", "Expectations", "Family", "Risks", "expectations"]

import_modules(__name__, __path__)
