"""A plugin for tests: students that start opposite to the teacher, row i to teacher row i mod k."""

import numpy as np

from sweeplib.networks.problem import STARTS, Start
from sweeplib.networks.problem.starts.start import rows_on_sphere


def weights(problem, W_star, normals):
    return -rows_on_sphere(W_star[np.arange(problem.p) % problem.k])


STARTS.register("opposed", Start("opposed", weights, on_sphere=True))
