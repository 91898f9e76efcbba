"""Noise added to the labels of samples, in kernels of steps (`label_noise` has its laws)."""

from sweeplib.networks.kernels.lanes import kernel, loops


@kernel
def stretched(functions, z, step, seed, key):  # type: ignore[no-untyped-def]
    """The noise of a label, of the variance 1, from the normal number z of its sample."""
    return z * functions.stretch(functions.tails, step, seed, key) if functions.tails.shape[0] > 0 else z


@loops
def stretch(scale_of, tails, step, seed, key, z):  # type: ignore[no-untyped-def]
    """Multiply normal numbers z (lanes,) by the scales of their samples.

    This is not compiled into steps, which plain ones take 5 % longer with.
    """
    for lane in range(z.shape[0]):
        z[lane] *= scale_of(tails, step[lane], seed[lane], key[lane])


@kernel
def add_noise(functions, stream, deviation, z, label):  # type: ignore[no-untyped-def]
    """Add noise to labels (lanes,), of the `deviation` (lanes,), from normal numbers z (lanes,) of their samples."""
    if functions.tails.shape[0] > 0:
        stretch(functions.stretch, functions.tails, stream.step, stream.seed, stream.key, z)
    for lane in range(label.shape[0]):
        label[lane] += deviation[lane] * z[lane]
