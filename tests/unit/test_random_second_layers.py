"""Second layers that each seed draws by a law: `a: normal`, `a: signs`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from sweeplib.commands.cli import app
from sweeplib.config import from_mapping
from sweeplib.engine.design.axis import Axis
from sweeplib.engine.storage import open_dataset
from sweeplib.errors import InputError
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.problem import Problem
from sweeplib.networks.problem.weights import drawn_second_layer
from sweeplib.networks.simulation import simulate

FIELDS: dict[str, Any] = {"p": 4, "k": 1, "d": 30, "gamma": 0.2, "Delta": 0.0, "activation": "erf"}


def drawn(law: str, seeds: int, **fields: Any) -> np.ndarray:
    problem = Problem(**FIELDS | fields, a=law)  # type: ignore[arg-type]
    return np.array([drawn_second_layer(problem, root_seed=0, seed=seed) for seed in range(seeds)])


def test_numbers_have_the_law() -> None:
    """Kolmogorov and Smirnov, and the binomial law; of 4000 numbers, one false alarm in a thousand each."""
    assert stats.kstest(drawn("normal", 1000).ravel(), "norm").pvalue > 1e-3
    signs = drawn("signs", 1000)
    assert set(signs.ravel()) == {-1.0, 1.0}
    assert stats.binomtest(int((signs > 0).sum()), signs.size).pvalue > 1e-3


def test_they_depend_on_the_seed_and_the_width_alone() -> None:
    first = drawn("normal", 3)
    assert (first == drawn("normal", 3, d=300, gamma=1.0, Delta=0.5)).all()
    assert len(np.unique(first)) == first.size
    assert not np.isin(drawn("normal", 3, p=5), first).any()


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "signs"])
def test_runs_start_with_them(law: str) -> None:
    """In SGD and its overlap chain alike; frozen, they stay."""
    layers = [
        simulate(
            Problem(**FIELDS, a=law), name, times=[0, 0.1], seeds=range(3), observables=["second_layer"]
        ).second_layer
        for name in ("sgd", "sgd_chain")
    ]
    for layer in layers:
        assert (layer.isel(time=0).transpose("seed", ...).values.reshape(3, 4) == drawn(law, 3)).all()
        assert (layer.isel(time=0) == layer.isel(time=1)).all()


def test_a_law_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match=r"^a: "):
        Problem(**FIELDS, a="norm")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`normal` or `signs`"):
        from_mapping(
            {"name": "any", "problem": dict(FIELDS), "grid": {"a": ["norm", "signs"]},
             "seeds": 1, "dynamics": ["ode"], "times": [0, 1]}, Path())  # fmt: skip


def test_numbers_and_laws_are_no_axis() -> None:
    with pytest.raises(InputError, match="an axis of numbers and names"):
        Axis("a", (1, "signs"))


def test_units_in_the_field_of_many_need_one_number() -> None:
    problem = Problem(**FIELDS, a="signs")
    with pytest.raises(InputError, match="no law for the other particles"):
        DYNAMICS["nonlinear_dynamics"].check(problem, DYNAMICS["nonlinear_dynamics"].Options())


@pytest.mark.slow
def test_a_sweep_over_laws_has_them_as_an_axis(tmp_path: Path) -> None:
    """By the command."""
    text = "problem: {p: 4, k: 1, d: 30, gamma: 0.2, Delta: 0, activation: square}\ngrid: {a: [signs, normal]}\n"
    text += "seeds: 2\ndynamics: [sgd]\ntimes: [0, 0.1]\nobservables: [risk, second_layer]\n"
    (tmp_path / "laws.yaml").write_text(text)
    arguments = ["sweep", str(tmp_path / "laws.yaml"), "--results", str(tmp_path / "results")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    ds = open_dataset(tmp_path / "results" / "laws" / "dataset.zarr")
    assert (ds.status == 1).all()
    assert list(map(str, ds.a.values)) == ["signs", "normal"]
