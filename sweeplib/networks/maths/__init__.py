"""The mathematics: activations, Gaussian expectations, overlaps.

`activations` and `formulas` are functions of fields; `expectations` has risks and drifts, means over Gaussian fields;
`particles` has means over inputs for wide students. `overlaps`, `mean_gradients`, `offsets`, `second_layer` and
`curvature` use them at given overlaps; `hermite` has coefficients and exponents.

Conventions everywhere: Q (p, p), M (p, k), P (k, k) are the overlaps of student and teacher, the covariances of their
fields λ (p,) and λ* (k,); a and a* the second layers; f = (1/p) Σ a_i σ(λ_i) and f* the outputs; Δ the variance of the
noise of labels; R = ½ E[(f* − f)²] the risk. A first axis n counts systems.
"""
