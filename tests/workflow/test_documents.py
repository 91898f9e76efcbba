"""Every block of code of README.md and docs/ as it stands: run, checked as part of a config, or left with a reason."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

from sweeplib.config import from_mapping
from sweeplib.config.plugged import cluster_settings
from sweeplib.strict_yaml import document

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
BLOCKS = [
    (page, *match.groups())
    for page in PAGES
    for match in re.finditer(r"^```(\w*)\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
]
TESTED_ELSEWHERE = {"docs/how-to/plugins.md": "tests/unit/test_plugins_page.py runs all of its files"}
NOT_RUN = {
    "make sweep ": "installs packages from the network; without that, test_working_directory.py runs it",
    "make -C ~/sweeplib": "the same, from another folder: test_working_directory.py",
    "make test ": "would run these tests in themselves",
    "Snakefile, workflow/": "the list of folders",
    "git clone": "needs the network",
    ".venv/bin/sweeplib plan": "installed by `make`, and SLURM follows",
    "sbatch": "needs SLURM: tests/slurm/on_slurm.py",
    "dask scheduler": "starts processes that do not end; tests/contracts/test_clusters.py uses such a scheduler",
    "# start.py": "needs Kubernetes: tests/unit/test_kubernetes.py",
    "ssh": "needs another machine",
    "openssl": "needs the command openssl; tests/contracts/test_clusters.py has schedulers with TLS",
    "from sweeplib.front.snakemake": "a Snakefile, which tests/workflow/test_modules.py runs",
    "    return Points(": "an excerpt of sweeplib/figures/sample_complexity.py",
}
"""Blocks that do not run here, by how they begin, each with the reason."""


def of(language: str) -> list[tuple[str, str]]:
    return [(page, text) for page, kind, text in BLOCKS if kind == language and page not in TESTED_ELSEWHERE]


def test_every_block_is_run_or_has_a_reason_not_to() -> None:
    run = {*of("yaml"), *((page, text) for page, text in of("python") if page == "README.md"), *STARTED}
    for page, _, text in BLOCKS:
        named = [start for start in NOT_RUN if text.startswith(start)]
        assert page in TESTED_ELSEWHERE or (page, text) in run or named, f"{page}: {text[:60]!r}"
    for start in NOT_RUN:
        assert any(text.startswith(start) for _, _, text in BLOCKS), f"no block begins with {start!r}"


STARTED = [(page, text) for page, text in of("sh") if text.startswith("sweeplib new")]


@pytest.mark.parametrize(("page", "text"), of("yaml"))
def test_yaml_is_valid(page: str, text: str, tmp_path: Path) -> None:
    content = document(re.sub("\\.\\.\\.", "", text)).data
    if set(content) == {"cluster"}:
        assert cluster_settings(content["cluster"])
    else:
        from_mapping({"name": "any", **content}, tmp_path)


@pytest.mark.slow
def test_python_of_the_readme_runs(tmp_path: Path) -> None:
    """On a quick start with fewer seeds; the blocks follow each other as in a notebook."""
    smaller = ["seeds=2", "grid.d=[3000]", "dynamics={sgd_chain: {}, ode: {}}", "figures=[]", "analyses=[]"]
    done(["sweep", str(ROOT / "config" / "quickstart.yaml"), *smaller], tmp_path)
    blocks = "\n".join(text for page, text in of("python") if page == "README.md")
    script = tmp_path / "script.py"
    lines = "".join(f"    {line}\n" if line else "\n" for line in blocks.splitlines())
    asked = (
        "    import xarray as xr\n    import sweeplib.accessor\n"
        "    ds = xr.open_zarr('results/quickstart/dataset.zarr')\n"
        "    ds.sel(d=3000).sweep.exit_times()\n    ds.sweep.figure('line', y='exit_steps', x='gamma')\n"
    )
    script.write_text(f"if __name__ == '__main__':\n{lines}{asked}")
    subprocess.run([sys.executable, script.name], cwd=tmp_path, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})


@pytest.mark.long
@pytest.mark.parametrize(("page", "text"), STARTED)
def test_the_commands_to_start_with_run(page: str, text: str, tmp_path: Path) -> None:
    for line in text.splitlines():
        done(line.partition("#")[0].split()[1:], tmp_path)


def done(arguments: list[str], folder: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "sweeplib", *arguments], cwd=folder, check=True, env=environment)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scan", "quickstart"])
def test_the_first_scans_of_a_user_contain_the_optima(name: str, tmp_path: Path) -> None:
    """Of every dynamics, that of SGD included, which lies above that of its ODE: no figure has arrows for optima."""
    (tmp_path / "quickstart.yaml").write_text((ROOT / "config" / "quickstart.yaml").read_text())
    done(["new", "scan.yaml"], tmp_path)
    done(["sweep", f"{name}.yaml"], tmp_path)
    folder = tmp_path / "results" / name
    scanned = xr.open_zarr(folder / "dataset.zarr").gamma
    found = xr.open_zarr(folder / "analysis" / "optimal_learning_rate.zarr").load()
    run = found.gammas_used > 0
    assert run.any(["d", "threshold", *({"Delta"} & set(run.dims))]).all() and not found.at_edge.any()
    assert (found.gamma_opt.notnull() == run).all()
    assert (found.gamma_opt_low.where(run, 1.0) > scanned.min()).all()
    assert (found.gamma_opt_high.where(run, 0.0) < scanned.max()).all()
    assert "optimal learning rate" in (folder / "report" / "index.html").read_text()
