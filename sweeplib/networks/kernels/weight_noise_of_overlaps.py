"""Noise of the weights in the overlaps of the SDE (`weight_noise`).

Arguments: `settings` of the run, `stream` naming each lane's random numbers, `work`, the `Noisy` of the group, and
`broken` (lanes,), which marks lanes whose overlaps count no more.
"""

import math

from sweeplib.networks.kernels.lanes import draw_normals
from sweeplib.networks.kernels.sde import sde_network, sde_prepare
from sweeplib.networks.kernels.sde_moves import project
from sweeplib.networks.kernels.weight_noise import NoiseKind, begin_noise


def add_to_overlaps(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Add s N L*ᵀ to M and s (N Lᵀ + L Nᵀ) to Q, with L = [A, B] and N of N(0, 1) numbers; project; factor Ω anew.

    work : the `Noisy` of the SDE. The mean of the square of s N is in the drift of Q. `functions` are not read.
    """
    diffusion, noise = work.inner, work.noise
    A, B, Q, M, L_star = diffusion.A, diffusion.B, diffusion.system.Q, diffusion.system.M, diffusion.L_star
    (p, k, lanes), scale, z = A.shape, noise.scale, noise.z
    begin_noise(settings, stream, diffusion.constants.numbers, noise)
    draw_normals(noise.stream.step, noise.stream.seed, noise.stream.key, z)
    for lane in range(lanes):
        # a step of the SDE is as long as `length` steps of SGD
        scale[lane] *= math.sqrt(settings.length)
    for i in range(p):
        first = i * (k + p)
        for r in range(k):
            for s in range(r + 1):
                for lane in range(lanes):
                    M[i, r, lane] += scale[lane] * z[first + s, lane] * L_star[r, s, lane]
        for j in range(p):
            for s in range(k + j + 1):
                for lane in range(lanes):
                    entry = A[j, s, lane] if s < k else B[j, s - k, lane]
                    Q[i, j, lane] += scale[lane] * z[first + s, lane] * entry
                    Q[j, i, lane] += scale[lane] * z[first + s, lane] * entry
    if settings.spherical:
        project(Q, M, diffusion.fields.square)
    sde_prepare(settings, functions, diffusion, broken)


OF_OVERLAPS = NoiseKind(sde_prepare, sde_network, add_to_overlaps)
"""What noise needs of steps of the SDE."""
