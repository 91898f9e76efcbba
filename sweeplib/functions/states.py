"""States of runs as bytes and back, as checkpoints keep them.

A state is made of numbers, texts, arrays, generators, and lists, tuples and dicts of them. Their subclasses are
refused, as a plain list or array would come back in their place.
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

ALLOWED = "numbers, texts, arrays, generators of NumPy, and lists, tuples and dicts of them"
TEXT = "text"
"""The name of the array that has, as JSON, all of the state but its arrays."""
KINDS = "biufcSU"
"""The kinds of arrays that a file has without pickles."""
SEEDS = "seed_sequence"
"""The key of the seeds of a generator, beside those of its state."""


def state_bytes(state: Any) -> bytes:
    """Return a state as the bytes of an npz file: its arrays, and the rest as JSON; TypeError for anything else."""
    arrays: dict[str, np.ndarray] = {}
    arrays[TEXT] = np.array(json.dumps(plain(state, arrays)))
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def state_in(content: bytes) -> Any:
    """Return the state that `state_bytes` made bytes of, with the same types and bits; nothing is executed."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return _restored(json.loads(str(arrays[TEXT])), arrays)


def plain(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return a state as plain values of JSON; its arrays are added to `arrays`, by names that stand in their places.

    TypeError for a state with anything else than `ALLOWED`.
    """

    def inner(values: Any) -> list[Any]:
        """Return the plain values of several."""
        return [plain(entry, arrays) for entry in values]

    match value:
        case np.ndarray() if type(value) is np.ndarray and value.dtype.kind in KINDS:
            arrays[name := str(len(arrays))] = value
            return {"array": name}
        case np.generic() if value.dtype.kind in KINDS:
            arrays[name := str(len(arrays))] = np.asarray(value)
            return {"scalar": name}
        case np.random.Generator(bit_generator=bits) if getattr(np.random, type(bits).__name__, None) is type(bits):
            # `spawn` makes its generators of the seeds, which the state lacks
            seeds = bits.seed_seq.state if isinstance(bits.seed_seq, np.random.SeedSequence) else None
            return {"generator": plain({**bits.state, SEEDS: seeds}, arrays)}
        case None | bool() | int() | float() | str() if type(value) in (type(None), bool, int, float, str):
            return value
        case list() | tuple() if type(value) in (list, tuple):
            return {type(value).__name__: inner(value)}
        case dict() if type(value) is dict:
            return {"dict": [inner(item) for item in value.items()]}
    raise TypeError(f"a state has a {type(value).__name__}; expected {ALLOWED}")


def _restored(value: Any, arrays: Any) -> Any:
    """Return the state that `plain` made these values of, with its arrays."""
    match value:
        case {"array": name}:
            return arrays[name]
        case {"scalar": name}:
            return arrays[name][()]
        case {"generator": state}:
            described = _restored(state, arrays)
            seeds = described.pop(SEEDS, None)  # states of before have none
            sequence = np.random.SeedSequence(**seeds) if seeds is not None else None
            bits = getattr(np.random, described["bit_generator"])(sequence)
            bits.state = described
            return np.random.Generator(bits)
        case {"list": entries}:
            return [_restored(entry, arrays) for entry in entries]
        case {"tuple": entries}:
            return tuple(_restored(entry, arrays) for entry in entries)
        case {"dict": items}:
            return {_restored(key, arrays): _restored(entry, arrays) for key, entry in items}
    return value
