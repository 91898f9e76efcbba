"""What a person reads after commands on real sweeps: merged datasets, also without attributes, and first sentences."""

import re
from collections.abc import Callable, Iterator
from html import unescape
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import sweeplib
from sweeplib import InputError
from sweeplib.engine.design.cluster import CLUSTERS
from sweeplib.engine.execution import work
from tests.faults.finished import Done
from tests.faults.forked import RegisteredHere
from tests.in_process import computed
from tests.plugged import nothing_left, written

pytestmark = pytest.mark.rest

KEYS = """
problem: {k: 1, d: 50, Delta: 0, activation: square}
seeds: 2
dynamics: [calm]
times: [1, 2]
thresholds: [0.1]
figures: []
plugins: [tests.faults.troubled]
cluster: {kind: here}
"""
SHAPES = {
    "grid": "grid: {gamma: [0.1, 0.2], p: [1, 2]}",
    "table": "points: points.csv",
    "zip": "grid: {zip: [{gamma: [0.1, 0.2], p: [2, 3]}]}",
    "derived": "grid: {p: [1, 2], rate: [0.1, 0.05]}\nderive: {gamma: rate * p}",
}
Swept = Callable[..., Path]


@pytest.fixture
def swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Swept]:
    """Yield what runs commands on a config, and returns the folder of its results."""
    monkeypatch.setattr(work, "dispatched", computed)
    (tmp_path / "points.csv").write_text("gamma,p\n0.2,1\n0.4,3\n0.1,1\n")

    def run(name: str, text: str, *commands: str) -> Path:
        config = tmp_path / f"{name}.yaml"
        config.write_text(text)
        for command in ("run", "finalise", *commands):
            status, said = Done(config).told(command)
            assert status == 0, (name, command, said)
        return tmp_path / "results" / name

    with nothing_left():
        CLUSTERS.register("here", RegisteredHere)
        yield run


def risks(ds: xr.Dataset) -> dict[tuple[float, ...], float]:
    """Return the last risk of each case, by its learning rate, width and seed."""
    rows = ds.assign_coords(gamma=ds.gamma, p=ds.p).risk.isel(time=-1).to_dataframe().dropna().reset_index()
    return {
        (round(gamma, 9), int(p), int(seed)): risk
        for gamma, p, seed, risk in zip(rows.gamma, rows.p, rows.seed, rows.risk, strict=True)
    }


def test_sweeps_of_all_shapes_are_one_by_their_parameters(swept: Swept) -> None:
    """With their attributes and without: arithmetic of xarray drops them, and statuses are numbers then."""
    parts = {name: sweeplib.open(swept(name, f"{keys}{KEYS}")).load() for name, keys in SHAPES.items()}
    known: dict[tuple[float, ...], float] = {}
    for ds in parts.values():
        mine = risks(ds)
        assert len(mine) == ds.status.size and all(known.get(case, risk) == risk for case, risk in mine.items())
        known |= mine
    for (one, first), (other, second) in permutations(parts.items(), 2):
        pair = sweeplib.combine(first, second)
        assert risks(pair) == risks(first) | risks(second), (one, other)
        assert int((pair.status == 1).sum()) == len(risks(pair))
    every = sweeplib.combine(*parts.values())
    assert risks(every) == known and (every.sweep.exit_times().seeds_used == 2).all()
    bare = [ds.assign(status=(ds * 1).drop_attrs().status, risk=ds.risk * 1) for ds in parts.values()]
    assert risks(sweeplib.combine(*bare)) == known
    with pytest.raises(InputError, match=r"^risk: other numbers of one case at .*gamma=0\.1, p=1"):
        sweeplib.combine(parts["grid"], parts["table"].assign(risk=parts["table"].risk + 1e-6))


BOWLS = """
import numpy as np
from sweeplib.plugins import DYNAMICS
from tests.faults.troubled import Calm

class Low(Calm):
    '''Exits that are earliest at a learning rate that grows with d.'''
    name, label, unit = "low", "Low", 1e-3

    @property
    def exit_steps(self):
        ratio = self.replicas.gamma / (self.unit * self.replicas.d)
        noise = np.array([numbers.normal() for numbers in self._numbers])
        return (100.0 * (ratio + 1 / ratio) * np.exp(0.05 * noise))[:, None]

class High(Low):
    name, label, unit = "high", "High", 3e-3

DYNAMICS.register("low", Low)
DYNAMICS.register("high", High)
"""


def test_each_range_in_the_first_sentence_of_a_report_is_of_what_it_speaks_of(swept: Swept, tmp_path: Path) -> None:
    written(tmp_path / "bowls.py", BOWLS)
    keys = KEYS.replace("tests.faults.troubled", "bowls.py").replace("[calm]", "[low, high]")
    keys = keys.replace("d: 50, ", "p: 1, ").replace("seeds: 2", "seeds: 16")
    grid = "grid: {gamma: {geomspace: [0.02, 3, 16]}, d: [100, 130, 160, 190, 220]}"
    results = swept("bowls", f"{grid}\nanalyses: [optimal_learning_rate]{keys}", "analyse", "report")
    optima = xr.open_zarr(results / "analysis" / "optimal_learning_rate.zarr").gamma_opt.squeeze().load()
    page = unescape(re.sub(r"<[^>]+>", "", (results / "report" / "index.html").read_text("utf-8")))
    [text] = re.findall(r"The optimal learning rate of .*", page)
    number = r"(\d\.\d+)"
    words = rf"of Low is .* at d=160; and between {number} and {number} at 2 more points \(.*\)\. "
    ranges = re.search(rf"{words}For High it is between {number} and {number} at 5 points\.", text)
    assert ranges is not None, text
    low, high = optima.sel(dynamics="low").values[-2:], optima.sel(dynamics="high").values
    expected = [low.min(), low.max(), high.min(), high.max()]
    np.testing.assert_allclose([float(end) for end in ranges.groups()], expected, atol=0.005)
    assert high.min() > low.max()
