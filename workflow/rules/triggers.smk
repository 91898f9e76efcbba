# What makes a stage run again: as `params`, the part of the config that it reads, a digest of the code that it calls, and
# the number of its failures, so that failed attempts are repeated; and that its output is of another config or dataset.
import functools
import pathlib

import sweeplib.storage.attempts
import sweeplib.storage.markers
import sweeplib.storage.provenance
import sweeplib.strict_yaml

settings = sweeplib.strict_yaml.parsed(sweep.source)
shown = ("analyses", "cluster", "figures", "plugins", "publish")
simulated = {key: value for key, value in settings.items() if key not in shown}
numerics = {name: sweep.numerics(name) for name in sweep.runs}
modest = {"mem_mb": 4000, "runtime": 120}  # resources of stages that do not simulate
failures = sweeplib.storage.attempts.past_failures(pathlib.Path(directory))
stale = functools.cache(
    lambda **options: sweeplib.storage.markers.stale_outputs(pathlib.Path(directory), sweep, **options)
)


def made_again(wildcards):
    """Return no input; stale outputs are forced, as by --forcerun, and stay in their place until their job starts."""
    if workflow.is_main_process:  # not in the jobs, whose inputs are some of them
        workflow.dag.forcefiles.update(map(str, stale(remember=not workflow.dryrun)))
    return []


def code(stage):
    """Return the digests of subpackages of the library and of the code of plugins that a stage calls."""
    return sweeplib.storage.provenance.stage_code(stage, sweep.plugins)
