"""Rules of quadrature, as tuples: constants to the compiler."""

import math

import numpy as np

Rule = tuple[tuple[float, ...], tuple[float, ...]]
"""The nodes and the weights of a rule."""


def legendre(nodes: int) -> Rule:
    """The rule of ∫_0^1 f(x) dx of Gauss and Legendre."""
    x, weights = np.polynomial.legendre.leggauss(nodes)
    return tuple((0.5 * (1.0 + x)).tolist()), tuple((0.5 * weights).tolist())


def trapezoidal(nodes: int, step: float) -> Rule:
    """The rule of E[f(g)], g ~ N(0, 1), with equally spaced nodes at this distance, symmetric about zero.

    For analytic functions the error is exponentially small in 1/step, and unlike a Gauss rule's it stays so for
    functions that vary on a scale below one.
    """
    x = step * (np.arange(nodes) - 0.5 * (nodes - 1))
    density = np.exp(-0.5 * x * x)
    return tuple(x.tolist()), tuple((density / density.sum()).tolist())


def normal(nodes: int) -> Rule:
    """The rule of E[f(g)], g ~ N(0, 1), of Gauss and Hermite."""
    x, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return tuple(x.tolist()), tuple((weights / weights.sum()).tolist())


def half_range(nodes: int, power: int) -> Rule:
    """The Gauss rule of the density ∝ x^power exp(−x²/2) on x > 0, for powers up to 200.

    Stieltjes' procedure on a fine grid gives the Jacobi matrix, Golub and Welsch's its rule (Gautschi 2004, 2.2.3).
    """
    offsets, panel = np.polynomial.legendre.leggauss(50)
    grid = (np.arange(24)[:, None] + 0.5 * (1.0 + offsets)).ravel()
    density = np.tile(panel, 24) * grid**power * np.exp(-0.5 * grid * grid)
    density /= density.sum()
    diagonal, beside = np.empty(nodes), np.empty(nodes)
    # the orthonormal polynomials of the degrees n − 1 and n on the grid
    before, now = np.zeros_like(grid), np.ones_like(grid)
    for n in range(nodes):
        diagonal[n] = density @ (grid * now * now)
        following = (grid - diagonal[n]) * now - (beside[n - 1] * before if n else 0.0)
        beside[n] = math.sqrt(density @ (following * following))
        before, now = now, following / beside[n]
    x, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1))
    return tuple(x.tolist()), tuple((vectors[0] ** 2).tolist())
