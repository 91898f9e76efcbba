"""Steps along the sphere: w_i moves by the part of the gradient orthogonal to it, and is then divided by its norm."""

from sweeplib.problem.steps.step import STEPS, Step

STEPS.register("tangent", Step("tangent", r"-\gamma (g - (g \cdot w) w/d)", is_tangent=True))
