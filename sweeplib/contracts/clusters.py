"""What every kind of cluster keeps; one whose settings have no defaults cannot be started here.

Public functions of `name`, the registered name of a kind of cluster, are checks: each raises BrokenError with what is
wrong, and its own name is the sentence that it checks.
"""

import json
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pydantic

from sweeplib.contracts.check import LeftOutError, require, require_equal, require_refusal
from sweeplib.engine.design.cluster import CLUSTERS

TRIED = """\
name: tried
problem: {{p: 1, k: 1, d: 10, Delta: 0, activation: erf, spherical: true}}
grid: {{gamma: [0.1, 0.2]}}
seeds: 2
dynamics: [ode]
times: [0, 1]
cluster: {{kind: {kind}, block_size: 1}}
analyses: []
figures: []
plugins: {plugins}
"""
"""The config of the sweep that is run on the cluster."""


def its_settings_say_what_they_are(name: str) -> None:
    """Check that `kind` is the registered name, that there is a docstring, and that unknown settings are refused."""
    settings = CLUSTERS[name]
    require("kind" in settings.model_fields, "it has no field `kind`")
    default = settings.model_fields["kind"].default
    require(default == name, f"its `kind` is {default!r}")
    require(bool(settings.__doc__), "it has no docstring")
    unknown = partial(settings.model_validate, {"wrokers": 2})
    require_refusal(unknown, "it takes unknown settings", pydantic.ValidationError)


def it_runs_a_sweep(name: str) -> None:
    """Check that its numbers are those of this process, to the bit."""
    missing = [key for key, field in CLUSTERS[name].model_fields.items() if field.is_required()]
    if missing:
        raise LeftOutError(f"it needs {', '.join(missing)}; try it by `sweeplib sweep`")
    from sweeplib.config import load
    from sweeplib.engine.execution.run import run_sweep
    from sweeplib.engine.storage.dataset.finalise import finalise
    from sweeplib.engine.storage.dataset.folder import open_dataset

    with tempfile.TemporaryDirectory() as folder:
        config, results = Path(folder, "tried.yaml"), Path(folder, "results", "tried")
        plugins = json.dumps([sys.modules[CLUSTERS.origin(name)].__file__])  # a list of YAML, too
        config.write_text(TRIED.format(kind=name, plugins=plugins), encoding="utf-8")
        sweep = load(config)
        run_sweep(sweep, results, progress=False)
        with open_dataset(finalise(sweep, results)) as ds:
            result = ds.risk.transpose("dynamics", "gamma", "seed", "time").values.copy()
        expected = np.empty(result.shape)
        for place, case in sweep.cases("ode"):
            expected[(0, *place)] = case.simulator.run([case]).data["risk"]
    require_equal(result, expected, "the risk of a sweep")
