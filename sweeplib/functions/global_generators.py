"""The global generators of NumPy, of Python and of PyTorch, from which a function may draw beside its `rng`.

Processes that are forked begin with one state of them, in which several cases would have the same numbers.
"""
# ruff: noqa: NPY002  (the legacy functions are the subject)

import pickle
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

BYTES = 40
"""The bytes that `seed_globals` takes: generators that share some would have the same numbers."""


def seed_globals(stream: bytes) -> None:
    """Set the global generators from `BYTES` random bytes; PyTorch's if a file has imported it."""
    np.random.seed(np.frombuffer(stream[:16], "<u4"))
    random.seed(int.from_bytes(stream[16:32], "little"))
    if torch := sys.modules.get("torch"):
        torch.manual_seed(int.from_bytes(stream[32:], "little"))


def states_since(stream: bytes) -> dict[str, Any]:
    """Return the states of the global generators; {} if nothing was drawn from them since `seed_globals(stream)`."""
    states = global_states()
    with global_states_kept():
        seed_globals(stream)
        return {} if pickle.dumps(states) == pickle.dumps(global_states()) else states


def global_states() -> dict[str, Any]:
    """Return the states of the global generators, as values that checkpoints keep."""
    states = {"numpy": np.random.get_state(), "random": random.getstate()}
    return states | ({"torch": torch.get_rng_state().numpy()} if (torch := sys.modules.get("torch")) else {})


def set_global_states(states: dict[str, Any]) -> None:
    """Set the global generators to the states that `global_states` returned."""
    np.random.set_state(states["numpy"])
    random.setstate(states["random"])
    if "torch" in states:
        torch = import_module("torch")  # a file may import it in its function alone
        torch.set_rng_state(torch.from_numpy(states["torch"]))


@contextmanager
def global_states_kept() -> Iterator[None]:
    """A context after which the global generators are as before: those of a notebook, or of who verifies."""
    states = global_states()
    try:
        yield
    finally:
        set_global_states(states)
