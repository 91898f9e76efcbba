"""The keys of the random numbers of the samples of cases."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.table import Table
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.numerics.random import stream_key
from sweeplib.networks.problem import parameters_of
from sweeplib.networks.simulation.cases import Case
from sweeplib.networks.simulation.columns import Cases

_DIGEST = "digest"
"""What stands for the digest of the problem in the text of which a key is made."""


def samples_key(case: Case) -> int:
    """The key of the random numbers of a case's samples, shared by cases that agree in the fields `pair_by`."""
    return int(samples_keys(Cases.of([case]))[0])


def samples_keys(cases: Cases) -> NDArray[np.uint64]:
    """The keys (n,) of the random numbers of the samples of cases, which have one `pair_by`.

    Without it keys are made of all parameters of the problem but those of observables, as `stream_key` would make them;
    the texts of many problems are written at once.
    """
    if cases[0].pair_by is not None:
        return cases.numbers(_shared_key, np.uint64)
    # columns of the texts of problems, and of the two texts between which `stream_key` has a problem's digest
    texts, streams = cases.texts(frozenset(parameters_of("observables"))), cases.column_of(_samples_stream)
    pairs = Table({"stream": streams, "text": texts}, len(cases))
    return pairs.over(("stream", "text"), _keys_of).array(np.uint64)


def _keys_of(columns: Mapping[str, Sequence[Any]], _: int) -> list[int]:
    """The keys of rows with a `stream`, the text before and after the problem's digest, and the `text` of a problem."""
    keys = []
    for (before, after), text in zip(columns["stream"], columns["text"], strict=True):
        problem = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        key = hashlib.blake2b(f"{before}{problem}{after}".encode(), digest_size=8).digest()
        keys.append(int.from_bytes(key, "little"))
    return keys


def _samples_stream(case: Case) -> tuple[str, str]:
    """The text of which a key is made, before and after the digest of the problem that stands in it."""
    # from the right: the name of a run may have the word too
    before, after = json.dumps([case.root_seed, "samples", _stream_of(case), _DIGEST]).rsplit(_DIGEST, 1)
    return before, after


def _stream_of(case: Case) -> str:
    """The name of the dynamics whose samples a case has: its own, unless the dynamics takes those of another."""
    return DYNAMICS[case.dynamics].samples_of or case.dynamics


def _shared_key(case: Case) -> int:
    """The key of the samples of a case that shares them with all that agree in its `pair_by`."""
    # resolved, as identities have them: values that mean the same have the same samples
    shared = {name: case.problem.resolved(name) for name in case.pair_by or () if name != "seed"}
    return stream_key(case.root_seed, "samples", _stream_of(case), shared)
