"""Steps along the sphere: w_i moves by the part of the gradient orthogonal to it, and is then divided by its norm."""

from sweeplib.networks.problem.updates.update import UPDATES, Update

UPDATES.add(Update("tangent", r"-\gamma (g - (g \cdot w) w/d)", is_tangent=True))
