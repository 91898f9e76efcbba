"""Noise added to the labels of samples, in kernels of steps (`label_noise` has its laws).

`functions` have the numbers `tails` of a law that is not Gaussian, none for a Gaussian one.
"""

from sweeplib.networks.kernels.lanes import kernel, loops


@kernel
def stretched(functions, z, step, seed, key):  # type: ignore[no-untyped-def]
    """The noise of a label, of the variance 1: the normal number z of its sample, times a scale unless it is Gaussian.

    step, seed, key : names of the sample's random numbers.
    """
    return z * functions.stretch(functions.tails, step, seed, key) if functions.tails.shape[0] > 0 else z


@loops
def stretch(scale_of, tails, step, seed, key, z):  # type: ignore[no-untyped-def]
    """Multiply normal numbers z (lanes,) by the scales of their samples, which `scale_of` draws by address.

    step, seed, key (lanes,) : names of the samples' random numbers. A loop apart: compiled into steps it would make
    plain ones 5 % slower.
    """
    for lane in range(z.shape[0]):
        z[lane] *= scale_of(tails, step[lane], seed[lane], key[lane])


@kernel
def add_noise(functions, stream, deviation, z, label):  # type: ignore[no-untyped-def]
    """Add √Δ times the noise of labels to label (lanes,), from normal numbers z (lanes,), which may change.

    deviation (lanes,) : √Δ. stream : names of the samples' random numbers.
    """
    if functions.tails.shape[0] > 0:
        stretch(functions.stretch, functions.tails, stream.step, stream.seed, stream.key, z)
    for lane in range(label.shape[0]):
        label[lane] += deviation[lane] * z[lane]
