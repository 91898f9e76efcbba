"""Sentences of the pages that list dynamics by what they do name those that do it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sweeplib.config.models import SweepConfig
from sweeplib.networks.dynamics import DYNAMICS, Dynamics
from sweeplib.networks.problem import Problem

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
PROBLEM = Problem(gamma=1.0, p=1, k=1, d=10, Delta=0.0, activation="linear")
MEAN_FIELDS = {"mean_field", "mean_field_hd", "nonlinear_dynamics"}
"""Those that are called the mean-field limits together."""

Kind = type[Dynamics]


def those(do: Callable[[Kind], bool]) -> set[str]:
    return {name for name in DYNAMICS if DYNAMICS.origin(name).startswith("sweeplib.") and do(DYNAMICS[name])}


def goes_on(kind: Kind) -> bool:
    return kind.state_size(PROBLEM, kind.Options()) > 0


def named(text: str) -> set[str]:
    return set(re.findall(r"\w+", text)) & set(DYNAMICS)


@pytest.mark.parametrize(
    ("page", "before", "after", "expected"),
    [
        ("exits.md", "- ", " find such exits", those(lambda kind: kind.finds_levels(kind.Options()))),
        ("growing.md", "**Which runs go on:**", "whose end was kept", those(goes_on)),
        ("times.md", "- ", " count no steps", those(lambda kind: not kind.counts_steps) - MEAN_FIELDS),
        ("continual.md", "- Only ", " act on tasks", those(lambda kind: "tasks" in kind.reads)),
    ],
)
def test_a_list_is_that_of_the_code(page: str, before: str, after: str, expected: set[str]) -> None:
    text = (HOW_TO / page).read_text()
    assert text.count(after) == 1
    assert named(text.partition(after)[0].rpartition(before)[2]) == expected


def test_the_key_keep_names_the_dynamics_that_go_on() -> None:
    description = SweepConfig.model_fields["keep"].description or ""
    assert named(description) == those(goes_on)
