"""A grid has all combinations of its axes, in the dataset's order, and keeps the order of its points when it grows."""

import itertools
import math
import re
import tracemalloc
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeplib.config.values import geomspace, linspace, logspace, stepped
from sweeplib.engine.design.grid import Axis, Grid
from sweeplib.engine.design.places import probes
from sweeplib.engine.language import Expression
from sweeplib.errors import InputError
from sweeplib.networks.problem import DATA, PARAMETERS, TASKS, Problem
from tests.points import points_of

FIXED = {"p": 1, "k": 1, "d": 100, "Delta": 0.0, "gamma": 0.1, "activation": "square"}

QUICK = settings(max_examples=50, deadline=None)

AXES = st.fixed_dictionaries(
    {},
    optional={
        "gamma": st.lists(st.floats(1e-6, 10), min_size=1, max_size=4, unique=True),
        "p": st.lists(st.integers(1, 40), min_size=1, max_size=3, unique=True),
        "d": st.lists(st.integers(50, 10**6), min_size=1, max_size=3, unique=True),
        "Delta": st.lists(st.floats(0, 10), min_size=1, max_size=2, unique=True),
        "activation": st.lists(st.sampled_from(["erf", "square"]), min_size=1, max_size=2, unique=True),
    },
)


def grid_of(axes: dict[str, list[Any]], **derived: str) -> Grid:
    fixed = {name: value for name, value in FIXED.items() if name not in axes and name not in derived}
    expressions = {name: Expression(text) for name, text in derived.items()}
    return Grid(tuple(Axis(name, tuple(values)) for name, values in axes.items()), fixed, expressions)


@pytest.mark.rest
@QUICK
@given(AXES)
def test_points_are_all_combinations_in_c_order(axes: dict[str, list[Any]]) -> None:
    grid = grid_of(axes)
    points = points_of(grid)
    assert grid.shape == tuple(len(axes[name]) for name in grid.dims)
    assert len(points) == grid.size == math.prod(grid.shape)
    assert [point.index for point in points] == list(itertools.product(*map(range, grid.shape)))
    for point in points:
        for axis, place in zip(grid.axes, point.index, strict=True):
            assert getattr(point.problem, axis.name) == axis.values[place] == point.values[axis.name]


@pytest.mark.rest
@QUICK
@given(AXES, st.randoms(use_true_random=False))
def test_the_order_of_writing_does_not_matter(axes: dict[str, list[Any]], random: Any) -> None:
    axes.pop("activation", None)
    shuffled = {name: random.sample(axes[name], len(axes[name])) for name in random.sample(sorted(axes), len(axes))}
    assert grid_of(shuffled) == grid_of(axes)


@pytest.mark.rest
@QUICK
@given(AXES.filter(bool), st.data())
def test_where_leaves_the_points_with_these_values(axes: dict[str, list[Any]], data: st.DataObject) -> None:
    grid = grid_of(axes)
    name = data.draw(st.sampled_from(sorted(axes)))
    wanted = data.draw(st.lists(st.sampled_from(axes[name]), min_size=1, unique=True))
    left = points_of(grid, {name: wanted})
    assert left == [point for point in points_of(grid) if point.values[name] in wanted]
    assert grid.size_where({name: wanted}) == len(left)


@pytest.mark.rest
@QUICK
@given(AXES, st.data())
def test_a_grid_that_grows_keeps_its_problems(axes: dict[str, list[Any]], data: st.DataObject) -> None:
    axes.setdefault("gamma", [0.1])
    before = {point.problem for point in points_of(grid_of(axes))}
    new = data.draw(st.floats(1e-6, 10).filter(lambda value: value not in axes["gamma"]))
    after = [point.problem for point in points_of(grid_of({**axes, "gamma": [*axes["gamma"], new]}))]
    assert before == {problem for problem in after if problem.gamma != new}
    assert len(after) == len(set(after))


def test_dims_are_ordered_as_in_the_dataset() -> None:
    axes = {"k": [1, 2], "Delta": [0], "activation": ["erf"], "d": [9], "p": [1], "gamma": [0.1], "a": [1, 2]}
    assert grid_of(axes).dims == ("gamma", "p", "d", "Delta", "a", "activation", "k")


@pytest.mark.rest
@pytest.mark.parametrize("name", PARAMETERS)
def test_every_field_of_a_problem_can_be_fixed_and_swept(name: str) -> None:
    """Lists are no values of an axis."""
    value = getattr(Problem(**FIXED), name)
    other = {"samples": 100, "second_layer_samples": 100, "schedule": "1 / (1 + t)", "teacher_activation": "erf"}
    other |= {"noise_schedule": "exp(-2 * t)", "start": "sphere", "m0": 0.1}
    fixed = FIXED
    for law in DATA.values():
        if name in law.parameter_names:
            fixed = FIXED | {"data": law.name} | {each: PARAMETERS[each].example for each in law.needed}
            fixed |= {"k": 0} if law.name == "two_gaussians" else {}
    if name in {"tasks", *TASKS["in_turn"].parameter_names}:
        fixed = FIXED | {"k": 2, "tasks": "in_turn", "switch_time": 0.5}
    if fixed is not FIXED or value is None:
        value = other.get(name, PARAMETERS[name].adapter.validate_python(PARAMETERS[name].example))
    [point] = points_of(Grid((), fixed | {name: value}))
    assert getattr(point.problem, name) == value
    if not isinstance(value, tuple):
        [point] = points_of(Grid((Axis(name, (value,)),), {key: fixed[key] for key in fixed if key != name}))
        assert getattr(point.problem, name) == point.values[name] == value


def test_types_are_those_of_the_fields() -> None:
    grid = grid_of({"p": [4.0, 1], "gamma": [1, 0.5], "a": [1, 2]})
    assert [repr(value) for axis in grid.axes for value in axis.values] == ["0.5", "1.0", "1", "4", "1.0", "2.0"]


def test_derived_fields_follow_their_axes() -> None:
    grid = Grid(
        (Axis("d", (100, 10000)), Axis("delta", (0.25, 0.5)), Axis("kappa", (0.0, 0.5))),
        {"gamma0": 2.0, "p0": 3, "k": 1, "Delta": 0.0, "activation": "erf"},
        {
            "p": Expression("round(p0 * width)"),
            "width": Expression("d**kappa"),
            "gamma": Expression("gamma0 * d**-delta"),
        },
    )
    assert grid.dims_of("gamma") == ("d", "delta")
    assert grid.dims_of("p") == ("d", "kappa")
    assert grid.dims_of("k") == ()
    assert grid.values_of("p") == (3, 30, 3, 300)
    assert grid.values_of("gamma") == (2 * 100**-0.25, 0.2, 0.2, 2 * 10000**-0.5)
    for point in points_of(grid):
        d, delta, kappa = (point.values[name] for name in ("d", "delta", "kappa"))
        assert point.problem.gamma == 2.0 * d**-delta
        assert point.problem.p == round(3 * d**kappa)


def test_linked_names_move_together() -> None:
    axis = Axis("p", (4, 1, 9), {"d": (400, 100, 900), "activation": ("erf", "square", "erf")})
    fixed = {name: FIXED[name] for name in ("gamma", "k", "Delta")}
    points = points_of(Grid((axis,), fixed))
    seen = [(point.problem.p, point.problem.d, point.problem.activation) for point in points]
    assert seen == [(1, 100, "square"), (4, 400, "erf"), (9, 900, "erf")]
    [point] = points_of(Grid((axis,), fixed), {"d": [400]})
    assert point.index == (1,)


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("gamma", (0.1, "0.1"), "gamma[1]: .* got '0.1'; expected a number without quotes"),
        ("gamma", (0.1, True), "gamma[1]: .* got True; expected a number"),
        ("gamma", (0.1, math.nan), "gamma[1]: .* got nan; expected a finite number"),
        ("gamma", (math.inf,), "gamma[0]: .* got inf; expected a finite number"),
        ("gamma", (0.1, 0.2, 0.1), "gamma[2]: value given twice; got 0.1"),
        ("p", (1, 1.0), "p[1]: value given twice; got 1"),
        ("gamma", (-1,), "gamma[0]: .* got -1; expected a number greater than 0"),
        ("gamma", (), "gamma: an axis needs at least one value"),
        ("p", (2.5,), "p[0]: .* got 2.5; expected a whole number"),
        ("p", (0,), "p[0]: .* got 0; expected a number of at least 1"),
        ("a", ((1.0, 2.0),), "a[0]: .* expected a number, a name or true/false"),
        ("start", ("sphre",), "start[0]: .* did you mean 'sphere'?"),
        ("activation", ("squre",), "activation[0]: unknown activation; .* did you mean 'square'?"),
        ("gamma0", ("x",), "gamma0[0]: .* got 'x'; expected a number"),
    ],
)
def test_values_that_a_name_cannot_have_are_refused(name: str, values: tuple[Any, ...], said: str) -> None:
    pattern = said.replace("[", r"\[").replace("?", r"\?")
    with pytest.raises(InputError, match=pattern):
        Axis(name, values)


def test_a_point_that_is_no_problem_is_named() -> None:
    with pytest.raises(InputError) as refused:
        grid_of({"k": [1, 5], "d": [3, 100], "gamma": [0.1]})
    assert str(refused.value) == ("grid.k: no orthogonal teacher at gamma=0.1, d=3, k=5; got 5; expected at most d = 3")


def test_a_corner_of_a_large_grid_is_checked() -> None:
    axes: dict[str, list[Any]] = {"k": list(range(1, 101)), "d": list(range(100, 99, -1)) + list(range(101, 201))}
    assert grid_of({**axes, "gamma": linspace(0.1, 1, 100)}).size == 100 * 101 * 100
    axes["k"].append(101)
    with pytest.raises(InputError, match="k=101"):
        grid_of({**axes, "gamma": linspace(0.1, 1, 100)})


def test_a_large_grid_is_not_held_in_memory() -> None:
    tracemalloc.start()
    grid = grid_of(
        {"d": [*range(1000, 1100)], "delta": linspace(0, 1, 100), "Delta": linspace(0, 1, 100)}, gamma="d**-delta"
    )
    assert grid.size == 10**6
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * grid.size  # bytes; a point as a problem takes a thousand


@QUICK
@given(st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_probes_meet_every_value_and_every_corner(lengths: list[int]) -> None:
    places = list(probes(lengths, most=40))
    assert len(places) <= 40 + 2 ** len(lengths)
    for axis, length in enumerate(lengths):
        assert {place[axis] for place in places} == set(range(length))
    assert set(itertools.product(*({0, length - 1} for length in lengths))) <= set(places)


DECIMALS = st.decimals(-1000, 1000, places=4).map(float)


@QUICK
@given(DECIMALS, DECIMALS, st.integers(2, 400))
def test_linspace_has_its_ends_and_is_even(first: float, last: float, count: int) -> None:
    values = linspace(first, last, count)
    assert (len(values), values[0], values[-1]) == (count, first, last)
    step = (last - first) / (count - 1)
    assert all(math.isclose(value, first + i * step, abs_tol=1e-9) for i, value in enumerate(values))


@QUICK
@given(st.integers(0, 1000), st.integers(1, 500), st.integers(2, 100), st.integers(1, 50))
def test_linspace_prints_short_decimals_and_grows(first: int, step: int, count: int, more: int) -> None:
    """Thousandths are the doubles nearest to the decimal numbers, for any length of the grid."""
    written = [float(f"{first + i * step}e-3") for i in range(count + more)]
    assert linspace(written[0], written[count - 1], count) == written[:count]
    assert linspace(written[0], written[-1], count + more) == written


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 9), st.integers(2, 12), st.integers(1, 12))
def test_geomspace_and_logspace_grow(first: int, count: int, more: int) -> None:
    """Twelve values per decade over any range: those of the shorter grid are in the longer one, to the last bit."""
    short, long = 12 * count + 1, 12 * (count + more) + 1
    assert geomspace(first, first * 10**count, short) == geomspace(first, first * 10 ** (count + more), long)[:short]
    assert logspace(0, count, short) == logspace(0, count + more, long)[:short]
    assert logspace(0, count, short)[::12] == [10.0**power for power in range(count + 1)]


def test_spacings_print_as_one_would_write_them() -> None:
    assert linspace(0.03, 0.14, 12) == [float(f"0.{i:02d}") for i in range(3, 15)]
    assert linspace(-1, 1, 21)[10] == 0.0
    assert geomspace(300, 30000, 3) == [300.0, 3000.0, 30000.0]
    assert logspace(-3, 0, 4) == [0.001, 0.01, 0.1, 1.0]


@QUICK
@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-7, 7).filter(bool))
def test_range_is_pythons(first: int, last: int, step: int) -> None:
    expected: Sequence[int] = range(first, last, step)
    if not expected:
        with pytest.raises(InputError):
            stepped(first, last, step)
        return
    assert stepped(first, last, step) == list(expected)
    assert stepped(first / 10, last / 10, step / 10) == [value / 10 for value in expected]


@pytest.mark.rest
@pytest.mark.parametrize("spacing", [logspace, geomspace, linspace])
@QUICK
@given(st.integers(-300, 300), st.integers(-300, 300), st.integers(1, 60))
def test_spaced_values_are_rounded_once(spacing: Any, first: int, last: int, count: int) -> None:
    """Values by products along the axis equal those computed one by one with more digits."""
    ends = (first / 64, last / 64) if spacing is not geomspace else (abs(first) / 64 + 1, abs(last) / 64 + 1)
    values = spacing(*ends, count)
    exact, parts = [Fraction(repr(end)) for end in ends], max(count - 1, 1)
    for place, value in enumerate(values):
        part = Fraction(place, parts)
        with localcontext(prec=120):
            if spacing is linspace:
                expected = float(exact[0] + (exact[1] - exact[0]) * part)
            elif spacing is logspace:
                expected = float(_45.plus(Decimal(10) ** _decimal(exact[0] + (exact[1] - exact[0]) * part)))
            else:
                ratio = _decimal(exact[1] / exact[0]) ** _decimal(part)
                expected = float(_45.plus(_decimal(exact[0]) * ratio))
        assert value == expected


_45 = Context(prec=45)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def test_a_when_that_is_rarely_true_is_found_where_it_is() -> None:
    grid = grid_of({"d": [*range(1000, 1300)], "gamma": linspace(0.1, 1, 300)})
    rare = Expression("1234 < d and d < 1240 and gamma > 0.5 and gamma < 0.52")
    found = grid.probed(when=rare).column("d").items()
    assert found and all(1234 < d < 1240 for d in found)
    assert len(grid.probed(when=Expression("d < 0"))) == 0


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"d": list(range(1, 4000)), "gamma": linspace(0.1, 1, 4000)}, "grid: too many points; got 15996000"),
        ({f"x{i}": [1] for i in range(17)}, "grid: too many axes; got 1"),
        ({"x" * 101: [1]}, "too long a name; expected at most 100 bytes"),
    ],
)
def test_a_grid_beyond_the_budget_is_refused(axes: dict[str, list[Any]], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        grid_of(axes)


def test_places_of_many_values_are_found_at_once() -> None:
    axis = Axis("gamma", tuple(linspace(0.1, 1, 5_001)))
    near = [value * (1 + 3e-13) for value in axis.values]
    assert axis.places("gamma", near) == set(range(5_001))
    assert Axis("d", (100, 300)).places("d", [300.0]) == {1}
    assert Axis("spherical", (False, True)).places("spherical", [True]) == {1}
    with pytest.raises(InputError, match="not a value of the axis spherical"):
        Axis("spherical", (False, True)).places("spherical", [1])


def test_one_point_of_each_code_counts_wherever_a_condition_leaves_it() -> None:
    """Probes of a large grid meet equal indices and corners alone; code is of each pair of names."""
    names = ("erf", "relu", "square")
    grid = grid_of({"activation": names, "teacher_activation": names, "gamma": linspace(0.01, 5, 120)})
    when = Expression("gamma > 0.02 and gamma < 4")
    points = grid.of_each_code(None, when)
    pairs = list(zip(*(points.column(name).items() for name in ("activation", "teacher_activation")), strict=True))
    assert sorted(pairs) == sorted(itertools.product(names, names))
    assert all(0.02 < gamma < 4 for gamma in points.column("gamma").items())
    only = grid.of_each_code({"activation": ["relu"], "teacher_activation": ["erf", "square"]}, when)
    assert only.column("teacher_activation").items() == ["erf", "square"]
    assert len(grid.of_each_code(None, Expression("gamma < 0"))) == 0
    assert len(grid_of({"gamma": [0.1, 0.2]}).of_each_code()) == 0
