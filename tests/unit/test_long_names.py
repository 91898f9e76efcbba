"""What a config of Python cannot hold is refused in a line, before any work: long names, masked and other arrays."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sweeplib import InputError
from sweeplib.config import from_mapping
from sweeplib.config.values import plain

SWEEP: dict[str, Any] = {
    "name": "x",
    "problem": {"p": 1, "k": 1, "d": 40, "Delta": 0, "activation": "square"},
    "grid": {"gamma": [0.1, 0.2]},
    "seeds": 2,
    "dynamics": ["sgd_chain"],
    "times": [0, 1],
    "thresholds": [0.1],
    "figures": [],
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a suffix": ({"dynamics": [f"sgd_chain-{'w' * 230}"]}, "dynamics: too long a name for files.*at most 100 bytes"),
    "bytes": ({"dynamics": {f"sgd_chain-{'é' * 60}": {}}}, "dynamics: too long a name for files.*at most 100 bytes"),
    "a figure": ({"figures": {"f" * 300: {"kind": "line", "y": "risk"}}}, "figures: too long a name for files"),
    "an analysis": ({"analyses": {"a" * 101: {}}}, "analyses: too long a name for files"),
    "masked": ({"grid": {"gamma": np.ma.masked_array([0.1, 0.2], [0, 1])}}, r"grid.gamma: an array with masked values"),
    "masked, one": ({"seeds": np.ma.masked}, "seeds: an array with masked values"),
    "masked times": ({"times": np.ma.masked_greater([0.0, 1.0, 9.0], 5)}, "times: an array with masked values"),
    "complex": ({"grid": {"gamma": np.array([1 + 2j])}}, "grid.gamma: an array of type complex128"),
    "dates": ({"times": np.array(["2020-01-01"], dtype="datetime64[D]")}, r"times: an array of type datetime64\[D\]"),
    "lacking": ({"grid": {"gamma": pd.Series([0.1, None], dtype="Float64")}}, r"grid.gamma\[1\]: not a value of gamma"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_config_can_hold_is_refused_in_a_line(name: str) -> None:
    changes, said = REFUSED[name]
    with pytest.raises(InputError, match=said) as refused:
        from_mapping(plain(SWEEP | changes))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "values", [np.ma.masked_array([0.1, 0.2], [0, 0]), pd.Series([0.1, 0.2], dtype="Float64"), pd.Series([0.1, 0.2])]
)
def test_arrays_that_lack_nothing_are_values(values: Any) -> None:
    assert from_mapping(plain(SWEEP | {"grid": {"gamma": values}})).grid.axes[0].values == (0.1, 0.2)
