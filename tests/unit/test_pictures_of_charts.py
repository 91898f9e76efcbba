"""Pictures draw the data of their charts: points as they are declared, other charts the rows of the interactive plot.

The rows of the interactive plot are those of its CSV file.
"""

import re
from functools import partial

import numpy as np
import pytest
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.lines import Line2D

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.contracts.datasets import giant_steps_dataset, regime_dataset
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES, Chart
from sweeplib.pictures.figures.figure import chart_figure
from sweeplib.pictures.figures.kit.chart import Layer, Level
from sweeplib.pictures.figures.kit.style import ARROWS
from sweeplib.pictures.report.plots import interactive_plot
from tests.datasets import sweep_dataset, units_dataset, with_outcome

close = partial(np.testing.assert_allclose, rtol=1e-7, atol=1e-9)


@pytest.fixture(scope="module")
def ds():
    return sweep_dataset(seeds=8)


@pytest.fixture(scope="module")
def short():
    """Return runs of which some did not exit, at learning rates that are not evenly spaced."""
    return sweep_dataset(seeds=8, horizon=1.0, ratios=[0.2, 0.3, 0.5, 0.9, 1.0, 1.4])


@pytest.fixture(scope="module")
def widths():
    return two_widths((0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5))


@pytest.fixture(scope="module")
def narrow():
    """Return learning rates beyond which the optima lie."""
    return two_widths((0.3, 0.4, 0.5, 0.6, 0.7))


def two_widths(ratios):
    parts = (sweep_dataset(seeds=8, dynamics=["ode", "sgd"], d=[300], ratios=ratios, random_seed=n) for n in (1, 2))
    both = [part.assign_coords(p=p) for p, part in zip((1, 4), parts, strict=True)]
    return xr.concat(both, "p", coords=["p"], combine_attrs="override")


@pytest.fixture(scope="module")
def batches():
    return giant_steps_dataset()


def _kept_gid(line, gid):
    """Name a line; the legend takes the names away, by which the tests know the series."""
    if gid is not None:
        Artist.set_gid(line, gid)


class Both:
    """A figure and its interactive plot, from the same data and with the same options."""

    def __init__(self, name, ds, **options):
        figure = FIGURES[name]
        made = {each: ANALYSES[each](ds) for each in figure.needed(options)}
        self.ds, self.analyses = with_constants(ds), {each: with_constants(one) for each, one in made.items()}
        self.declared = figure.declared(ds, made, **options)
        self.plot = interactive_plot(name, self.declared, ds, made, options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Line2D, "set_gid", _kept_gid)
            self.drawing = figure(ds, made, **options)
        self.split = self.declared.split
        self.coords = {
            str(key): one.coords[key]
            for one in (*self.analyses.values(), self.ds)
            for key in one.dims
            if key in one.coords
        }
        columns = self.plot.table.columns
        decoded = [[each.levels[value] for value in each.values] if each.levels else each.values for each in columns]
        self.rows = [dict(zip([each.name for each in columns], row, strict=True)) for row in zip(*decoded, strict=True)]

    def places(self, dim):
        """Return the values of an axis that the figure shows."""
        found = self.coords[dim].values
        return np.atleast_1d(found[self.split.at[dim]] if dim in self.split.at else found).tolist()

    def series(self):
        """Return the rows of what the figure shows by the numbers of panel and colour and the dynamics."""
        found = {}
        for row in self.rows:
            if any(dim in row and row[dim] not in self.places(dim) for dim in self.split.at):
                continue
            place = [self.places(dim).index(row[dim]) if dim else 0 for dim in (self.split.panel, self.split.hue)]
            found.setdefault((*place, row["dynamics"]), []).append(row)
        return found

    def column(self, rows, name):
        return np.array([np.nan if row[name] is None else row[name] for row in rows], float)

    def bars(self, rows, y):
        """Return the ends of the bars of rows, as the script of the page finds them."""
        middle = self.column(rows, y)
        if f"{y}_low" in rows[0]:
            known = (self.column(rows, f"{y}{end}") for end in ("_low", "_high"))
            return tuple(np.where(np.isnan(end) & (self.plot.spec["kind"] != "curves"), middle, end) for end in known)
        error = self.column(rows, f"{y}_error") if f"{y}_error" in rows[0] else np.nan
        return middle - error, middle + error

    def points(self, x, y):
        """Return x and y, names of columns or functions of rows, of the known points of each series."""
        x, y = (each if callable(each) else partial(self.column, name=each) for each in (x, y))
        found = {key: known(x(rows), y(rows)) for key, rows in self.series().items()}
        return {key: points for key, points in found.items() if len(points)}

    def told_bars(self, x, y):
        """Return x and both ends of the bars of each series that have a length."""
        found = {}
        for key, rows in self.series().items():
            if len(bars := only_long(self.column(rows, x), *self.bars(rows, y))):
                found[key] = bars
        return found


def keys(axes, panel):
    """Yield the lines of data in a panel, each with the numbers of panel and colour and the dynamics."""
    caps = [cap for box in axes.containers for cap in box.lines[1]]
    for line in [line for line in axes.lines if line not in caps]:
        if found := re.match(r"hue-(\d+) dynamics-(\S+)", line.get_gid() or ""):
            yield (panel, int(found[1]), found[2]), line


def known(*columns):
    """Return the points of which all coordinates are known, in order."""
    points = np.column_stack([np.asarray(column, float) for column in columns])
    points = points[np.isfinite(points).all(axis=1)]
    return points[np.lexsort(points.T[::-1])]


def drawn_points(panels):
    """Return the points of each series, bounds included."""
    found = {}
    for panel, axes in enumerate(panels):
        for key, line in keys(axes, panel):
            found.setdefault(key, []).append(np.asarray(line.get_xydata(), float).reshape(-1, 2))
    joined = {key: known(*np.concatenate(parts).T) for key, parts in found.items()}
    return {key: points for key, points in joined.items() if len(points)}


def drawn_bars(panels):
    """Return the x and both ends of the bars of each series that have a length."""
    found = {}
    for panel, axes in enumerate(panels):
        for box in axes.containers:
            [key] = [key for key, line in keys(axes, panel) if line is box.lines[0]]
            for bars in box.lines[2]:
                ends = [(each[0, 0], *each[:, 1]) for each in bars.get_segments() if len(each)]
                found.setdefault(key, []).extend(ends)
    return {key: long for key, bars in found.items() if len(long := only_long(*np.array(bars).reshape(-1, 3).T))}


def only_long(x, low, high):
    return known(*np.where(np.isclose(high, low, rtol=1e-8, atol=1e-12), np.nan, [x, low, high]))


def same(drawn, told, *, some=True):
    """Assert that what is drawn and what the rows tell have the same series, and these the same points."""
    assert drawn or not some
    assert drawn.keys() == told.keys()
    for key, points in drawn.items():
        assert points.shape == told[key].shape, key
        close(points, told[key], err_msg=str(key))


POINTS = [
    ("ds", "line", {"y": "risk", "x": "gamma_ratio"}),
    ("ds", "line", {"y": "risk", "x": "time"}),
    ("ds", "line", {"y": "exit_steps_median", "x": "gamma", "hue": "Delta", "panel": "d"}),
    ("ds", "line", {"y": "gamma_opt", "x": "d"}),
    ("short", "line", {"y": "exit_steps"}),
    ("ds", "ratio", {"y": "risk", "x": "gamma_ratio"}),
    ("ds", "ratio", {"y": "exit_steps"}),
    ("ds", "learning_rate_scan", {"panel": "Delta"}),
    ("short", "learning_rate_scan", {"panel": "d", "scale": "d log d"}),
    ("widths", "optimal_learning_rate", {}),
    ("widths", "overparametrisation_gain", {}),
    ("narrow", "optimal_learning_rate", {}),
    ("narrow", "overparametrisation_gain", {}),
    ("short", "exit_time_scaling", {}),
    ("short", "exited_fraction", {"panel": "d"}),
    ("ds", "risk_floor", {}),
    ("ds", "deviation", {"where": {"Delta": 1.0}}),
    ("ds", "sample_complexity", {"where": {"Delta": 1.0}}),
    ("batches", "batch_tradeoff", {}),
]


def series(both):
    """Yield the data of each series, by the numbers of panel and colour and the dynamics."""
    data = both.split.selected(both.declared.pictured(both.ds, both.analyses))
    for panel, hue, one in both.split.series(data):
        for name in one["dynamics"].values:
            yield (panel, hue, str(name)), one.sel(dynamics=name)


def declared_points(both, level):
    """Return x, y and both ends of the bars of the points of each series, and x, y of bounds, which have an arrow.

    A bar does not reach to the side on which the truth may lie beyond a bound.
    """
    points, found, beyond = both.declared, {}, {}
    for key, one in series(both):
        y = one[level.y]
        if f"{level.y}_low" in one:
            ends = [one[f"{level.y}{end}"] for end in ("_low", "_high")]
        else:
            ends = [y + sign * one.get(f"{level.y}_error", np.nan) for sign in (-1, 1)]
        unit = one[level.over] if level.over else 1.0
        x = one[points.x] / (one[points.x_over] if points.x_over else 1.0)
        bound = one[y.attrs["bound"]] if "bound" in y.attrs else xr.zeros_like(y, dtype=bool)
        columns = [part.values.ravel() for part in xr.broadcast(x, y / unit, *(end / unit for end in ends), bound)]
        side, (x, y, low, high, bound) = y.attrs.get("bound_side", "either"), columns
        bound = bound.astype(bool)
        low, high = (np.where(bound & (side == cut), y, end) for cut, end in (("below", low), ("above", high)))
        found[key] = np.column_stack([x, y, low, high])[np.isfinite(y)]
        beyond[key] = known(x[bound], y[bound])
    return ({key: rows for key, rows in each.items() if len(rows)} for each in (found, beyond))


@pytest.mark.parametrize(
    ("which", "name", "options"), POINTS[:1] + [pytest.param(*one, marks=pytest.mark.slow) for one in POINTS[1:]]
)
def test_points_with_their_intervals_at_all_levels(which, name, options, request):
    both = Both(name, request.getfixturevalue(which), **options)
    levels = both.declared.levels
    panels = len(both.drawing.axes) // len(levels)
    aside = 1 if both.declared.aside else 0  # of points that are shifted sideways, only the heights
    for place, level in enumerate(levels):
        if not level.y:
            continue
        axes = both.drawing.axes[place * panels : (place + 1) * panels]
        declared, beyond = declared_points(both, level)
        same(
            {key: known(*each.T[aside:]) for key, each in drawn_points(axes).items()},
            {key: known(*each.T[aside:2]) for key, each in declared.items()},
        )
        arrows = [line.get_xydata() for one in axes for line in one.lines if line.get_marker() in ARROWS.values()]
        told = list(beyond.values())
        assert len(arrows) == len(told)
        if told:
            close(*(known(*np.concatenate(each).T[aside:]) for each in (arrows, told)))
        if both.declared.kind != "curves":  # only some of many points have bars
            bars = {key: each[:, aside:] for key, each in drawn_bars(axes).items()}
            told = {key: only_long(*each[:, [0, 2, 3]].T)[:, aside:] for key, each in declared.items()}
            same(
                {key: known(*each.T) for key, each in bars.items()},
                {key: known(*each.T) for key, each in told.items() if len(each)},
                some=False,
            )


@pytest.mark.rest
def test_the_rows_of_a_plot_are_the_points_of_its_picture(ds):
    both = Both("line", ds, y="exit_steps")
    same(drawn_points(both.drawing.axes), both.points("gamma_ratio", "exit_steps_mean"))
    same(drawn_bars(both.drawing.axes), both.told_bars("gamma_ratio", "exit_steps_mean"))


@pytest.mark.slow
def test_lines_of_many_points_have_some_of_the_bars(ds):
    both = Both("line", ds, y="risk", x="time")
    drawn, told = drawn_bars(both.drawing.axes), both.told_bars("time", "risk")
    assert drawn
    for key, bars in drawn.items():
        close(bars, [next(bar for bar in told[key] if np.isclose(bar[0], x)) for x, *_ in bars])


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_one_declaration_for_picture_and_page(name):
    figure = FIGURES[name]
    assert figure.interactive is figure.arrange is not None
    assert figure.function.__name__ == figure.interactive.__name__


def test_an_unknown_mark_is_refused(ds):
    levels = (Level((Layer("points", "risk_floor"), Layer("acros", 1.0))),)
    chart = Chart(x="gamma", y="risk_floor", needs=("risk_floor",), levels=levels)
    with pytest.raises(InputError, match=r"acros.*across"):
        chart_figure("any", lambda ds, analyses: chart, "Any.", ("risk_floor",))(ds)


@pytest.mark.slow
def test_optima_below_a_scan(ds):
    both = Both("learning_rate_scan", ds)
    count = len(both.drawing.axes) // 2
    for panel, axes in enumerate(both.drawing.axes[count:]):
        drawn = {key: box.lines for box in axes.containers for key, line in keys(axes, panel) if line is box.lines[0]}
        told = {key: one for key, one in series(both) if key[0] == panel and one["gamma_opt"].notnull()}
        assert drawn.keys() == told.keys()
        for key, (point, _, [bar]) in drawn.items():
            ends = [told[key][f"gamma_opt{end}"] / told[key]["gamma_unit"] for end in ("", "_low", "_high")]
            close(np.array([point.get_xdata()[0], *bar.get_segments()[0][:, 0]]), [end.item() for end in ends])


def drawn_curves(panels):
    """Return the points of each curve; its name has the number of its colour and its dynamics."""
    found = {}
    for panel, axes in enumerate(panels):
        for line in axes.lines:
            if name := re.fullmatch(r"hue-(\d+) dynamics-(sgd|sgd_chain|ode|giant_steps)", line.get_gid() or ""):
                found[panel, int(name[1]), name[2]] = known(*np.asarray(line.get_xydata(), float).T)
    return {key: points for key, points in found.items() if len(points)}


@pytest.mark.slow
def test_curves_of_the_risk_with_their_bands(ds):
    both = Both("risk_curves", ds)
    same(drawn_curves(both.drawing.axes), both.points("time", "risk"))
    for panel, axes in enumerate(both.drawing.axes):
        told = [bars for key, bars in both.told_bars("time", "risk").items() if key[0] == panel and key[2] != "ode"]
        drawn = [corners(band) for band in axes.collections if isinstance(band, PolyCollection)]
        alike = [[one.shape == other.shape and np.allclose(one, other, rtol=1e-7) for other in told] for one in drawn]
        assert np.array_equal(np.sort(np.sum(alike, 0)), np.ones(len(told)))
        assert len(drawn) == len(told)


def corners(band):
    """Return x and both edges of a band."""
    points = np.concatenate([path.vertices for path in band.get_paths()])
    edges = [(x, *(extreme(points[points[:, 0] == x, 1]) for extreme in (min, max))) for x in np.unique(points[:, 0])]
    return only_long(*np.array(edges).T)


@pytest.mark.slow
def test_fans_of_the_risk_have_its_medians(ds):
    both = Both("risk_fans", ds, where={"d": 300})
    stochastic = [name for name in ("sgd", "sgd_chain", "giant_steps") if name in ds.dynamics.values]
    told = {key[2]: points for key, points in both.points("time", "risk").items()}
    for name, axes in zip(stochastic, both.drawing.axes, strict=True):
        drawn = {line.get_gid(): line for line in axes.lines if line.get_gid() in ("median", "ode")}
        close(known(*drawn["median"].get_xydata().T), told[name])
        close(known(*drawn["ode"].get_xydata().T), told["ode"])


@pytest.mark.slow
@pytest.mark.parametrize("lost", [[], [0, 3]])
def test_runs_with_their_median(ds, lost):
    """Also where some of the first seeds have no value."""
    gone = ds.seed.isin(lost)
    both = Both("trajectories", with_outcome(ds, "failed", gone.broadcast_like(ds.status)), y="risk", runs=3)
    medians = {key: np.unique(points, axis=0) for key, points in both.points("time", "risk_of_all").items()}
    if lost:  # so many that there is no median
        assert drawn_curves(both.drawing.axes) == medians == {}
    else:
        same(drawn_curves(both.drawing.axes), medians)
    for panel, axes in enumerate(both.drawing.axes):
        drawn = [np.asarray(line.get_xydata(), float) for line in axes.lines if line.get_gid() == "run"]
        told = []
        for key, rows in both.series().items():
            for seed in {row["seed"] for row in rows if key[0] == panel}:
                one = [row for row in rows if row["seed"] == seed]
                told.append(known(both.column(one, "time"), both.column(one, "risk_seeds")))
        close(*(np.array(sorted(part.tolist() for part in parts)) for parts in (drawn, told)))


@pytest.mark.slow
@pytest.mark.parametrize("y", ["exit_steps", "exit_time", "risk"])
@pytest.mark.parametrize("which", ["ds", "short"])
def test_distributions(which, y, request):
    both = Both("distribution", request.getfixturevalue(which), y=y)
    same(drawn_curves(both.drawing.axes), both.points("value", "fraction"))
    told = both.told_bars("value", "fraction")
    for panel, axes in enumerate(both.drawing.axes):
        first = [
            each for each in ("sgd", "sgd_chain", "ode") if any(key[0] == panel and key[2] == each for key in told)
        ]
        bands = [band for band in axes.collections if isinstance(band, PolyCollection)]
        assert bands
        for band in bands:
            points = np.concatenate([path.vertices for path in band.get_paths()])
            points = points[np.isfinite(points).all(axis=1)]
            fits = [bars for key, bars in told.items() if key[0] == panel and contained(points, bars)]
            assert len(fits) == 1, (panel, first)


def contained(corners, bars):
    """Return whether each edge of a band is one of the rows, and each row one of its edges."""
    edges = np.concatenate([bars[:, [0, 1]], bars[:, [0, 2]]])
    found = [np.isclose(corners, edge, rtol=1e-7, atol=1e-9).all(axis=1).any() for edge in edges]
    return all(found) and np.isin(np.round(corners[:, 1], 7), np.round([*edges[:, 1], 0.0], 7)).all()


@pytest.mark.slow
def test_survival_curves(ds):
    both = Both("exit_time_distributions", ds)
    same(drawn_curves(both.drawing.axes), both.points("passed", "survival"))


@pytest.mark.slow
@pytest.mark.parametrize("where", [{}, {"time": [0.0, 1.0, 2.0]}])
def test_units(where):
    """Deterministic dynamics have markers at the first 30 units in the figure, at all in the plot."""
    both = Both("unit_clouds", units_dataset(times=5), where=where)
    times = np.unique([row["time"] for row in both.rows])
    shown = both.places("time") if both.split.panel else times
    for time, axes in zip(shown, both.drawing.axes, strict=True):
        for name in ("sgd", "mean_field"):
            rows = [row for row in both.rows if row["dynamics"] == name and row["time"] == time]
            [line] = [line for line in axes.lines if line.get_gid() == f"dynamics-{name}"]
            told = np.column_stack([both.column(rows, "unit_overlap"), both.column(rows, "unit_norm")])
            drawn = np.asarray(line.get_xydata(), float)
            close(drawn, told if name == "sgd" else told[:30])


MAPS = [
    ("ds", {"z": "risk"}),
    ("ds", {"z": "exit_steps"}),
    ("ds", {"z": "gamma_opt", "x": "d", "y": "Delta"}),
    ("short", {"z": "risk"}),
    ("short", {"z": "exit_steps"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("which", "options"), MAPS)
def test_maps_with_the_edges_of_their_cells(which, options, request):
    both = Both("map", request.getfixturevalue(which), **options)
    over, variable = (both.declared.x, both.declared.y), both.declared.z
    edges = [both.plot.spec["cells"][axis] for axis in "xy"]
    places = [np.unique([row[name] for row in both.rows]) for name in over]
    panels = [axes for axes in both.drawing.axes if any(isinstance(each, QuadMesh) for each in axes.collections)]
    selected = both.series()
    for panel, axes in enumerate(panels[: len(both.places("dynamics"))]):
        mesh = next(each for each in axes.collections if isinstance(each, QuadMesh))
        x, y = np.moveaxis(mesh.get_coordinates(), -1, 0)
        close(x[0], edges[0])
        close(y[:, 0], edges[1])
        told = np.full([len(places[1]), len(places[0])], np.nan)
        for row in next((rows for key, rows in selected.items() if key[0] == panel), []):
            at = [int(np.argmin(abs(known - row[name]))) for known, name in zip(places, over, strict=True)]
            told[at[1], at[0]] = np.nan if row[variable] is None else row[variable]
        close(told, np.ma.filled(np.ma.asarray(mesh.get_array(), float), np.nan).reshape(told.shape))


@pytest.mark.slow
def test_diagrams_of_regimes_and_limits():
    both = Both("phase_diagram", regime_dataset((-1.0, 0.0, 1.0), (0.0, 0.5), (100, 1000), seeds=6))
    lines = [line for line in both.drawing.axes[0].lines if len(line.get_xdata()) == 1]
    drawn = {(line.get_xdata()[0], line.get_ydata()[0], line.get_gid()) for line in lines}
    assert drawn == {(row["delta"], row["kappa"], row["regime"]) for row in both.rows}
    dynamics = ("ode", "gradient_flow", "sgd_chain")
    both = Both("limits_diagram", sweep_dataset(seeds=6, derived=False, Delta=(0.0,), dynamics=dynamics))
    names = {f"code-{code}": name for code, name in enumerate(["undecided", "ode", "gradient_flow", "none"])}
    drawn = [
        (names[line.get_gid()], *point)
        for line in both.drawing.axes[0].lines
        if line.get_gid() in names
        for point in line.get_xydata()
    ]
    told = [(row["limit"], row["ratio"], row["d"]) for row in both.rows if row["limit"]]
    assert [name for name, *_ in sorted(drawn)] == [name for name, *_ in sorted(told)]
    close(*([place for _, *place in sorted(part)] for part in (drawn, told)))
