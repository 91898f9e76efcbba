"""Rules in the plane of two standard Gaussian variables u, in polar coordinates, split at given rays.

With Gauss-Legendre angles in each sector between lines through the origin, and the Gauss rule of the length for the
radii, an activation with a kink at zero is as smooth as any other, and nodes move smoothly with the rays.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from sweeplib.numerics.compiled import inlined, without_references

Array = np.ndarray[Any, np.dtype[np.float64]]


@without_references
def line_angle(first: float, second: float) -> float:
    """The direction in [0, π) of the line on which first u_1 + second u_2 = 0."""
    direction = math.atan2(second, first) + 0.5 * math.pi
    if direction < 0.0:
        direction += math.pi
    return direction - math.pi if direction >= math.pi else direction


class Plane(NamedTuple):
    """A rule for E[f(u_1, u_2)]: nodes u_1, u_2 and weights, and the rules from which it is built.

    These are rules (2, nodes) of angles on (0, 1), of radii, and of |g|, g ~ N(0, 1), on a line. `lines` has the lines
    at which the plane is split.
    """

    angles: Array
    radii: Array
    line: Array
    lines: Array
    first: Array
    second: Array
    weight: Array


@inlined
def planes(angles: Array, radii: Array, line: Array, lines: int) -> Plane:
    """Arrays for rules split at so many lines, or at one point."""
    size = max(2 * lines * angles.shape[1] * radii.shape[1], 2 * line.shape[1])
    return Plane(angles, radii, line, np.empty(lines), np.empty(size), np.empty(size), np.empty(size))


@without_references
def sort(numbers: Array, count: int) -> None:
    """Sort the first `count` numbers by insertion."""
    for last in range(1, count):
        number, at = numbers[last], last
        while at > 0 and numbers[at - 1] > number:
            numbers[at] = numbers[at - 1]
            at -= 1
        numbers[at] = number


@without_references
def split_at(plane: Plane, count: int) -> int:
    """Sort the first `count` lines; fill nodes for E[f(u_1, u_2)] split at them, and return the number of nodes."""
    lines, at = plane.lines, 0
    sort(lines, count)
    for line in range(count):
        start = lines[line]
        width = (lines[line + 1] if line + 1 < count else lines[0] + math.pi) - start
        for node in range(plane.angles.shape[1]):
            angle, share = start + width * plane.angles[0, node], 0.5 * width / math.pi * plane.angles[1, node]
            cosine, sine = math.cos(angle), math.sin(angle)
            for radius in range(plane.radii.shape[1]):
                for sign in (-1.0, 1.0):
                    plane.first[at] = sign * plane.radii[0, radius] * cosine
                    plane.second[at] = sign * plane.radii[0, radius] * sine
                    plane.weight[at] = share * plane.radii[1, radius]
                    at += 1
    return at


@without_references
def on_a_line(plane: Plane) -> int:
    """Fill nodes for E[f(u_1)] split at zero; return their number."""
    nodes = plane.line.shape[1]
    for node in range(nodes):
        for side in range(2):
            plane.first[2 * node + side] = plane.line[0, node] if side else -plane.line[0, node]
            plane.second[2 * node + side] = 0.0
            plane.weight[2 * node + side] = 0.5 * plane.line[1, node]
    return 2 * nodes


@without_references
def components(omega: Array, i: int, j: int, first: Array, second: Array) -> None:
    """Fill cov(z_m, u_1) and cov(z_m, u_2) of every field, u_1 along z_i and u_2 along what z_j has beyond."""
    scale = math.sqrt(omega[i, i])
    for m in range(len(first)):
        first[m] = 0.0 if scale == 0.0 else omega[i, m] / scale
    rest = omega[j, j] - first[j] * first[j]
    beyond = 0.0 if i == j or rest < 1e-14 * omega[j, j] else math.sqrt(rest)
    for m in range(len(first)):
        room = math.sqrt(max(omega[m, m] - first[m] * first[m], 0.0))
        slope = 0.0 if beyond == 0.0 else (omega[j, m] - first[j] * first[m]) / beyond
        second[m] = max(min(slope, room), -room)


@without_references
def fill_lines(plane: Plane, kink: Array, i: int, j: int, first: Array, second: Array) -> int:
    """Fill the lines where z_i, z_j or the mean of another field with a kink is zero; return their number."""
    plane.lines[0], plane.lines[1], found = 0.5 * math.pi, line_angle(first[j], second[j]), 2
    for m in range(len(kink)):
        if kink[m] != 0.0 and m not in (i, j):
            plane.lines[found] = line_angle(first[m], second[m])
            found += 1
    return found
