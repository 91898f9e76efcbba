"""Fields of the problem in a dataset: coordinates, or attributes if they are constant."""

import numpy as np
import pytest
import xarray as xr

from sweeplib import analysis
from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.problem_fields import field, with_constants
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES
from tests.datasets import sweep_dataset, with_constants_as_attributes
from tests.tiers import slow_but


@pytest.fixture(scope="module")
def layouts() -> tuple[xr.Dataset, xr.Dataset]:
    """Return one dataset with its constant fields as coordinates, and as attributes."""
    ds = sweep_dataset(seeds=8, Delta=[1.0]).squeeze("Delta")
    return with_constants(ds), with_constants_as_attributes(ds)


def test_a_field_is_found_in_both_layouts(layouts):
    for ds in layouts:
        assert field(ds, "Delta").item() == 1.0
        assert field(ds, "activation").item() == "square"
        assert field(ds, "spherical").astype(bool).item() is True
        assert field(ds, "d").dims == ("d",)
    assert field(layouts[1], "Delta").attrs == {
        "long_name": "label-noise variance", "units": "1", "symbol": r"\Delta"
    }  # fmt: skip


def test_arithmetic_on_fields_and_exits_compares_no_constants(layouts):
    """xarray compares the coordinates of both sides, which takes three times as long as the rest."""
    for ds in layouts:
        assert set(field(ds, "d").coords) == {"d"}
        assert not field(ds, "Delta").coords
        assert set(passages(ds, "steps").exit.coords) == {"dynamics", "seed", "d", "gamma_ratio", "gamma", "threshold"}


@pytest.mark.rest
def test_the_result_for_one_value_of_an_axis_says_which(layouts):
    for ds in layouts:
        found, whole = (analysis.exit_times(part) for part in (ds.isel(d=0), ds))
        assert found["d"].item() == ds["d"].values[0]
        xr.testing.assert_equal(found["exit_time_mean"], whole["exit_time_mean"].isel(d=0))


def test_what_a_dataset_does_not_say_is_its_default_or_refused(layouts):
    for ds in layouts:
        assert field(ds, "second_layer_rate", 0.0).item() == 0.0
        with pytest.raises(InputError, match="k_star: the dataset does not say"):
            field(ds, "k_star")


def test_a_second_layer_of_several_numbers_is_a_field_too(layouts):
    assert field(layouts[1].assign_attrs(a=[1.0, 0.5]), "a").item() == "[1.0, 0.5]"


@pytest.mark.rest
@pytest.mark.parametrize("name", ["exit_times", "optimal_learning_rate", "risk_floor"])
def test_analyses_are_the_same_in_both_layouts(name, layouts):
    first, second = (getattr(analysis, name)(ds) for ds in layouts)
    for variable in first.data_vars:
        np.testing.assert_array_equal(first[variable].values, second[variable].values, err_msg=str(variable))
    assert second.attrs["Delta"] == 1.0


DRAWN = ["learning_rate_scan", "exit_time_scaling", "exit_time_distributions", "risk_floor"]


@pytest.mark.rest
@pytest.mark.parametrize("name", slow_but(DRAWN, "exit_time_scaling", "risk_floor"))
def test_figures_draw_theory_in_both_layouts(name, layouts):
    first, second = (FIGURES[name](ds) for ds in layouts)
    for one, other in zip(first.axes, second.axes, strict=True):
        assert len(one.lines) == len(other.lines)
        for line, again in zip(one.lines, other.lines, strict=True):
            np.testing.assert_array_equal(line.get_xydata(), again.get_xydata())


def test_an_interactive_plot_over_a_constant_width_has_its_variable(layouts):
    optima = analysis.optimal_learning_rate(layouts[1])
    found = {"optimal_learning_rate": optima}
    shown = FIGURES["optimal_learning_rate"].declared(layouts[1], found).labelled(layouts[1], found)
    assert shown["p"].item() == 1
