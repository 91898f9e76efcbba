"""Noise added to the labels of samples, in kernels of steps (`label_noise` has its laws)."""

from sweeplib.networks.kernels.lanes import kernel


@kernel
def stretched(functions, z, step, seed, key):  # type: ignore[no-untyped-def]
    """The noise of a label, of the variance 1, from the normal number z of its sample."""
    return z * functions.stretch(functions.tails, step, seed, key) if functions.tails.shape[0] > 0 else z


@kernel
def add_noise(functions, stream, deviation, z, label):  # type: ignore[no-untyped-def]
    """Add noise to labels (lanes,), of the `deviation` (lanes,), from normal numbers z (lanes,) of their samples."""
    if functions.tails.shape[0] > 0:
        for lane in range(label.shape[0]):
            z[lane] = stretched(functions, z[lane], stream.step[lane], stream.seed[lane], stream.key[lane])
    for lane in range(label.shape[0]):
        label[lane] += deviation[lane] * z[lane]
