"""SGD on weights takes its steps in blocks; an event within a block is recorded at its step."""

import numpy as np
import pytest

from sweeplib import Problem, simulate
from sweeplib.engine.status import Status
from sweeplib.networks.kernels.weights import BLOCK

RETRIEVAL = Problem(gamma=0.1, p=1, k=1, d=20, Delta=0.0, activation="square", spherical=True, m0=0.3)
UNSTABLE = Problem(gamma=0.5, p=3, k=2, d=20, Delta=0.0, activation="he3")


def both(problem, steps, **arguments):
    """Return the run recorded once, which takes full blocks, and recorded at every step, which takes single steps."""
    times = np.arange(steps + 1) * problem.step_time()
    return (simulate(problem, "sgd", times=shown, seeds=range(40), **arguments) for shown in (times[[-1]], times))


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["end", "exit"])
def test_exits_are_noted_at_their_step(stop):
    blocks, single = both(RETRIEVAL, 803, thresholds=[0.3, 0.9], stop=stop)
    np.testing.assert_array_equal(blocks.exit_steps, single.exit_steps)
    np.testing.assert_array_equal(blocks.end_steps, single.end_steps)
    out = blocks.exit_steps.values[np.isfinite(blocks.exit_steps)]
    assert out.size > 20
    assert set(out % BLOCK) == set(range(BLOCK))
    np.testing.assert_allclose(blocks.risk[:, -1], single.risk[:, -1], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_divergences_are_noted_at_their_step():
    blocks, single = both(UNSTABLE, 401)
    np.testing.assert_array_equal(blocks.status, single.status)
    np.testing.assert_array_equal(blocks.end_steps, single.end_steps)
    diverged = blocks.end_steps.values[blocks.status == Status.diverged]
    assert diverged.size > 10
    assert set(diverged % BLOCK) == set(range(BLOCK))
