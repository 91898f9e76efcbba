"""The models of config/functions: their laws, by the configs that the gallery shows, smaller."""

import re
import shutil
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import cumulative_simpson, simpson

import sweeplib
from sweeplib.config import load
from sweeplib.engine.status import Status

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "config" / "functions"
PAGE = (ROOT / "docs" / "gallery-functions.md").read_text(encoding="utf-8")
NEEDS = {"schelling": "mesa", "perceptron": "sklearn"}
"""The packages of the extra `examples` that models need."""


def ran(name: str, results: Path, *overrides: str, folder: Path = FOLDER) -> xr.Dataset:
    """Return the dataset of a config with other values, without its questions and figures; all its cases are ok."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f'needs {NEEDS[name]}: pip install ".[examples]"')
    sweep = sweeplib.Sweep.from_yaml(
        folder / f"{name}.yaml", "figures=[]", "analyses={}", "answers={}", *overrides, results=results
    )
    ds = sweep.run(progress=False).load()
    assert (ds.status == Status.ok).all()
    return ds.squeeze("dynamics")


def standard_errors(values: xr.DataArray, law: object) -> xr.DataArray:
    """Return by how many standard errors means over the replicas differ from a law."""
    return (values.mean("seed") - law) / (values.std("seed", ddof=1) / np.sqrt(values.sizes["seed"]))


def test_the_files_of_the_tutorial_are_those_of_its_picture() -> None:
    """The last of each name that stand on its page."""
    page = (ROOT / "docs" / "tutorial-functions.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^```\w+\n# (parking\.\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    assert len(blocks) == 2
    for name, text in blocks.items():
        assert (ROOT / "config" / "tutorial" / name).read_text(encoding="utf-8") == text


def test_the_page_shows_every_model_with_its_config_and_its_figure() -> None:
    for config in FOLDER.glob("*.yaml"):
        assert config.read_text(encoding="utf-8").count("\n") <= 20
        for file in (config.name, f"{config.stem}.py"):
            assert f"{{literalinclude}} ../config/functions/{file}\n" in PAGE
        assert f"(images/{config.stem}.png)" in PAGE
    assert len(re.findall(r"images/\w+\.png", PAGE)) == len(list(FOLDER.glob("*.yaml"))) == 7


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in NEEDS else ())
        for name in sorted({path.stem for path in FOLDER.glob("*.yaml")} - {"percolation"})
    ],
)
def test_its_questions_and_figures_fit_it(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f'needs {NEEDS[name]}: pip install ".[examples]"')
    assert len(load(FOLDER / f"{name}.yaml").figures) == 1


@pytest.mark.slow
def test_ising_is_that_of_all_states_of_a_small_lattice(tmp_path: Path) -> None:
    bits = (np.arange(2**16)[:, None] >> np.arange(16)) & 1
    spins = (2 * bits - 1).reshape(-1, 4, 4)
    energy = -(spins * (np.roll(spins, 1, 1) + np.roll(spins, 1, 2))).sum((1, 2)) / 16
    m = np.abs(spins.mean((1, 2)))
    ds = ran("ising", tmp_path, "grid.L=4", "grid.T=1.5,2.3,4", "parameters.clusters=500", "seeds=24").sel(L=4)
    ds["square"] = ds.susceptibility * ds["T"] + 16 * ds.magnetisation**2
    for T in ds["T"].values:
        weights = np.exp(-16 * (energy - energy.min()) / T)
        for name, values in {"energy": energy, "magnetisation": m, "square": 16 * m**2}.items():
            exact = (weights * values).sum() / weights.sum()
            assert abs(standard_errors(ds[name].sel(T=T), exact)) < 4, (name, T)


@pytest.mark.slow
def test_copies_have_the_mean_and_the_variance_of_their_master_equation(tmp_path: Path) -> None:
    """With bursts of one copy those of Poisson's law; bursts of B in the end (1 + B)/2 times its variance."""
    ds = ran("expression", tmp_path, "grid.burst=1,4", "times=0.5,6", "seeds=150")
    t, mean = ds.time, 20.0
    expected = mean * (1 - np.exp(-t))
    variance = mean * (ds.burst * (1 - np.exp(-2 * t)) / 2 + (1 - np.exp(-t)) ** 2 / 2)
    assert (abs(standard_errors(ds.copies, expected)) < 4).all()
    assert (abs(standard_errors((ds.copies - expected) ** 2, variance)) < 4).all()
    np.testing.assert_allclose(variance.sel(burst=1), expected)


@pytest.mark.slow
def test_a_particle_escapes_after_the_mean_time_of_its_backward_equation(tmp_path: Path) -> None:
    """∫ e^{V(y)/D} ∫ e^{−V(z)/D} dz dy/D over z < y, y from −1 to 1; the step of time may add 3 %."""
    x = np.linspace(-4, 1, 20_001)
    ds = ran("double_well", tmp_path, "grid.barrier=1,2", "seeds=300")
    for barrier in (1, 2):
        noise, potential = 1 / (4 * barrier), x**4 / 4 - x**2 / 2
        inner = cumulative_simpson(np.exp(-potential / noise), x=x, initial=0)
        exact = simpson((np.exp(potential / noise) * inner)[x >= -1], x=x[x >= -1]) / noise
        times = ds.escape.sel(barrier=barrier)
        assert abs(standard_errors(times, exact)) < 4 + 0.03 * exact / (times.std() / np.sqrt(300))


@pytest.mark.slow
def test_a_perceptron_learns_and_its_mean_weights_better(tmp_path: Path) -> None:
    ds = ran("perceptron", tmp_path, "grid.n=8,64", "seeds=100")
    assert standard_errors(ds.error.sel(n=8) - ds.error.sel(n=64), 0).min() > 4
    assert standard_errors((ds.error.sel(weights="last") - ds.error.sel(weights="average")).mean("n"), 0) > 3


@pytest.mark.slow
def test_chance_costs_what_the_mean_arm_does_and_bounds_cost_less(tmp_path: Path) -> None:
    """The best of ten arms has the chance 10/11 on average, all of them ½."""
    ds = ran("bandit", tmp_path, "grid.explore=0.2,1", "seeds=150", "parameters.pulls=300")
    assert abs(standard_errors(ds.regret.sel(policy="epsilon", explore=1), 300 * (10 / 11 - 1 / 2))) < 4
    assert ds.regret.sel(policy="ucb", explore=0.2).mean() < 60


@pytest.mark.slow
def test_a_mild_wish_divides_a_town(tmp_path: Path) -> None:
    """Where nobody wishes anything, neighbours are those of chance: of 230 people 114 are of one's own kind."""
    ds = ran("schelling", tmp_path, "grid.wish=0,0.4", "seeds=8", "parameters.steps=12")
    assert abs(standard_errors(ds.alike.sel(wish=0), 114 / 229)) < 5
    assert ds.alike.sel(wish=0.4).mean() > 0.7
    assert (ds.content.sel(wish=0) == 1).all() and ds.content.sel(wish=0.4).mean() > 0.95


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a compiler of C, cc")
def test_a_program_in_c_percolates_as_all_lattices_of_seven_bonds_do(tmp_path: Path) -> None:
    """At the density ½ half of them do, at every size: the lattice is its own dual."""
    for file in FOLDER.glob("percolation.*"):
        shutil.copy(file, tmp_path)
    subprocess.run(["cc", "-O2", "-o", "percolation", "percolation.c"], cwd=tmp_path, check=True)
    ds = ran("percolation", tmp_path / "results", "grid.L=2", "grid.density=0.3,0.5", "seeds=150", folder=tmp_path)
    for density in (0.3, 0.5):
        exact = sum(
            density ** sum(bonds) * (1 - density) ** (7 - sum(bonds))
            for bonds in product((0, 1), repeat=7)
            if _has_a_path(bonds)
        )
        assert density != 0.5 or exact == 0.5
        assert abs(float(ds.spans.sel(density=density).mean()) - exact) < 4 * np.sqrt(exact * (1 - exact) / 150)
    assert len(load(tmp_path / "percolation.yaml").figures) == 1


def _has_a_path(bonds: tuple[int, ...]) -> bool:
    """Return whether open bonds lead from left to right through two rows of three sites; five of them matter."""
    upper, upper_right, lower, lower_right, middle, _, _ = bonds
    through = (upper and upper_right) or (lower and lower_right)
    return bool(through or (middle and ((upper and lower_right) or (lower and upper_right))))
