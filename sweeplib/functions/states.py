"""States of runs as bytes and back: numbers, texts, arrays, generators, and lists, tuples and dicts of them."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

ALLOWED = "numbers, texts, arrays, generators of NumPy, and lists, tuples and dicts of them"
TEXT = "text"
"""The name of the array that has, as JSON, all of the state but its arrays."""


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
        case np.ndarray() | np.generic() if value.dtype.kind in "biufcSU":
            arrays[name := str(len(arrays))] = np.asarray(value)
            return {"array" if isinstance(value, np.ndarray) else "scalar": name}
        case np.random.Generator():
            return {"generator": plain(value.bit_generator.state, arrays)}
        case None | bool() | int() | float() | str() if type(value) in (type(None), bool, int, float, str):
            return value
        case list() | tuple() if type(value) in (list, tuple):
            return {type(value).__name__: inner(value)}
        case dict():
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
            bits = getattr(np.random, described["bit_generator"])()
            bits.state = described
            return np.random.Generator(bits)
        case {"list": entries}:
            return [_restored(entry, arrays) for entry in entries]
        case {"tuple": entries}:
            return tuple(_restored(entry, arrays) for entry in entries)
        case {"dict": items}:
            return {_restored(key, arrays): _restored(entry, arrays) for key, entry in items}
    return value
