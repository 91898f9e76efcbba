"""Figures and analyses that do not fit the grid are refused, before any work, in a line with the remedy."""

import gc
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from sweeplib.config import load
from sweeplib.errors import InputError

SOUND = """\
problem: {p: 1, k: 1, activation: square, spherical: true}
grid:
  d: [300, 1000]
  Delta: [0, 0.5]
  gamma: [0.05, 0.06, 0.07]
seeds: 4
dynamics: [sgd_chain, ode]
times: {linspace: [0, 12, 13]}
thresholds: [0.01]
"""
NO_THRESHOLDS = ("thresholds: [0.01]\n", "")
ONE_DIMENSION = ("  d: [300, 1000]\n", "  d: [300]\n")
ONE_RATE = ("  gamma: [0.05, 0.06, 0.07]\n", "  gamma: [0.05]\n")
WIDTHS = ("  d: [300", "  p: [2, 4]\n  d: [300")
REFUSED: list[tuple[str, list[tuple[str, str]], str]] = [
    (
        "figures: [learning_rate_scan]",
        [NO_THRESHOLDS],
        ":9: figures.learning_rate_scan: its analysis exit_times does not fit: not recorded in this sweep; "
        "got 'exit_steps'; expected `thresholds`, such as [0.01]",
    ),
    ("analyses: [exit_times]", [NO_THRESHOLDS], ":9: analyses.exit_times: not recorded in this sweep"),
    ("figures: [exit_time_distributions]", [NO_THRESHOLDS], "figures.exit_time_distributions: not recorded"),
    (
        "figures: {learning_rate_scan: {where: {Dleta: 0}}}",
        [],
        ":10: figures.learning_rate_scan.where.Dleta: no such axis; got 'Dleta'; expected one of Delta, d, dynamics, "
        "gamma, threshold; did you mean 'Delta'?",
    ),
    (
        "figures: {learning_rate_scan: {where: {Delta: 0.3}}}",
        [],
        "figures.learning_rate_scan.where.Delta: not a value of the axis Delta; got 0.3; expected one of 0.0, 0.5; did "
        "you mean 0.5?",
    ),
    ("figures: {risk_curves: {where: {dynamics: sdg_chain}}}", [], "did you mean 'sgd_chain'?"),
    ("figures: {risk_curves: {where: {time: 12}}}", [], "figures.risk_curves.where.time: the figure draws this axis"),
    ("figures: {risk_curves: {where: 3}}", [], "figures.risk_curves.where: not a valid option"),
    ("figures: {risk_curves: {panel: gama}}", [], "figures.risk_curves.panel: no such axis to draw; got 'gama'; "),
    (
        "figures: {risk_curves: {panel: d}}",
        [("d: [300, 1000]", "d: {range: [300, 3000, 100]}")],
        "figures.risk_curves.panel: too many values of d; got 27; expected at most 6 values; give `where` one of d",
    ),
    (
        "figures: [learning_rate_scan]",
        [("p: 1, ", ""), ("  d: [300", "  p: [1, 2]\n  d: [300")],
        "figures.learning_rate_scan.where: too many axes for one figure; got ['p', 'd', 'Delta']; expected a value for",
    ),
    ("figures: [phase_diagram]", [], "its analysis regimes does not fit: not recorded in this sweep; got"),
    ("figures: {learning_rate_scan: {scale: log}}", [], "got 'log'; expected one of 1, d, d log d"),
    (
        "figures: {learning_rate_scan: {theories: [quenched, anealed]}}",
        [],
        "got 'anealed'; expected one of annealed, noise-corrected, quenched; did you mean 'annealed'?",
    ),
    ("figures: {risk_fans: {runs: many}}", [], "figures.risk_fans.runs: not a valid option of the figure 'risk_fans'"),
    (
        "analyses: {exit_times: {confidence: banana}}",
        [],
        ":10: analyses.exit_times.confidence: not a valid option of the analysis 'exit_times'; got 'banana'; "
        "expected a number",
    ),
    ("analyses: {exit_times: {confidence: 1}}", [], "got 1; expected a number less than 1"),
    ("analyses: {limits: {candidates: ode}}", [], "analyses.limits.candidates: ", ),
    ("analyses: {limits: {candidates: [hdmf, 3]}}", [], "analyses.limits.candidates[1]: "),
    ("analyses: {optimal_learning_rate: {along: d}}", [], "analyses.optimal_learning_rate.along: gamma does not vary"),
    ("analyses: {deviation: {reference: sde}}", [], "analyses.deviation.reference: not among the dynamics that were"),
    ("analyses: [regimes]\nobservables: [risk, student_norm]", [], "analyses.regimes: not among the dynamics that"),
    ("figures: [exit_time_scaling]", [ONE_DIMENSION], "figures.exit_time_scaling: the input dimension does not vary"),
    (
        "figures: [sample_complexity]",
        [ONE_DIMENSION],
        "figures.sample_complexity: its analysis sample_complexity does not fit: the input dimension does not vary; "
        "expected an axis d in `grid`, of two values or more",
    ),
    *(
        (f"figures: [{name}]", [ONE_RATE], "the learning rate does not vary; expected two learning rates or more")
        for name in ("learning_rate_scan", "exited_fraction", "risk_floor", "optimal_learning_rate")
    ),
    ("figures: [deviation]", [("[sgd_chain, ode]", "[ode]")], "nothing to compare with; got ['ode']"),
    ("figures: {deviation: {observable: overlaps}}", [], "figures.deviation.observable: no deviation of it"),
    ("figures: [risk_curves]\nobservables: [student_norm]", [], ":10: figures.risk_curves: not recorded in this sweep"),
    ("figures: [overparametrisation_gain]", [("p: 1, ", ""), WIDTHS], "no width to compare with; got [2, 4]"),
]  # fmt: skip


def config(folder: Path, extra: str, changes: list[tuple[str, str]]) -> Path:
    text = SOUND
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "sweep.yaml"
    path.write_text(f"{text}{extra}\n")
    return path


@pytest.mark.rest
@pytest.mark.parametrize(("extra", "changes", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_does_not_fit_is_refused_in_one_line(
    extra: str, changes: list[tuple[str, str]], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refusal:
        load(config(tmp_path, extra, changes))
    message = str(refusal.value)
    assert said in message
    assert message.startswith(f"{tmp_path / 'sweep.yaml'}:")
    assert "\n" not in message
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.yaml"]


def test_an_override_is_named_where_it_is_at_fault(tmp_path: Path) -> None:
    path = config(tmp_path, "figures: [risk_curves]", [])
    with pytest.raises(
        InputError, match=r"^override figures\.risk_curves\.hue=p: figures\.risk_curves\.hue: no such axis"
    ):
        load(path, ["figures.risk_curves.hue=p"])


@pytest.mark.rest
def test_a_large_sweep_is_checked_at_once_and_without_its_libraries(tmp_path: Path) -> None:
    """Two million points, four figures: in a tenth of a second, without imports for drawing or storing."""
    grid = "  d: {range: [100, 10100, 100]}\n  Delta: {linspace: [0, 1, 100]}\n  gamma: {geomspace: [1.0e-3, 1, 200]}\n"
    text = SOUND[: SOUND.index("  d:")] + grid + SOUND[SOUND.index("seeds") :]
    figures = (
        "{risk_curves: {}, exit_time_scaling: {}, risk_floor: {}, learning_rate_scan: {where: {d: 100, Delta: 0}}}"
    )
    (tmp_path / "large.yaml").write_text(f"{text}figures: {figures}\n")
    code = "import sys; from sweeplib.config import load; load('large.yaml'); sys.exit(any(map(sys.modules.get, {!r})))"
    unwanted = ("xarray", "matplotlib", "zarr", "pandas", "dask")
    command = [sys.executable, "-c", code.format(unwanted)]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    from sweeplib.config.options import check_fit
    from sweeplib.engine.storage.dataset.outline import planned_outline

    sweep = load(tmp_path / "large.yaml")
    gc.collect()  # what other tests have left is no work of the check
    start = time.process_time()
    check_fit(sweep, {overlaps: planned_outline(sweep, groups=overlaps) for overlaps in (False, True)}, listed=[])
    assert time.process_time() - start < 0.1


@pytest.mark.rest
@pytest.mark.parametrize(
    ("changes", "drawn"),
    [
        ("", ["learning_rate_scan", "risk_curves", "last_records"]),
        ("grid: {m0: [0.1, 0.2]}\nproblem: {gamma: 0.1, d: 20, p: 1, k: 1, Delta: 0, activation: erf, spherical: true}",
         ["exit_steps", "risk_curves", "last_records"]),
        ("thresholds: []", ["risk_curves", "last_records"]),
        ("stop: exit", ["learning_rate_scan", "exit_time_distributions"]),
        ("grid: {gamma: [0.1, 0.2, 0.3, 0.4]}", ["exit_steps", "risk_curves", "last_records"]),
        ("observables: [overlap_M]\nthresholds: []", []),
        ("figures: []", []),
        ("figures: [exited_fraction]", ["exited_fraction"]),
    ],
)  # fmt: skip
def test_a_config_without_figures_has_those_that_fit(changes, drawn, tmp_path):
    given = yaml.safe_load(
        "problem: {p: 1, k: 1, d: 20, Delta: 0, activation: square, spherical: true}\ngrid: {gamma: [1, 2, 3, 4, 5]}\n"
        "seeds: 2\ndynamics: [sgd_chain]\ntimes: [0, 1]\nthresholds: [0.1]"
    )
    path = tmp_path / "sweep.yaml"
    path.write_text(yaml.safe_dump(given | (yaml.safe_load(changes) or {})))
    sweep = load(path)
    assert list(sweep.figures) == drawn
    (tmp_path / "config.yaml").write_text(sweep.source)
    assert list(load(tmp_path / "config.yaml").figures) == drawn
