# The `params` that make a stage run again: the part of the config that it reads, a digest of the code that it calls, and
# the number of its failures, so that failed attempts are repeated.
import pathlib

import sweeplib.storage.attempts
import sweeplib.storage.markers
import sweeplib.storage.provenance
import sweeplib.strict_yaml

settings = sweeplib.strict_yaml.parsed(sweep.source)
shown = ("analyses", "cluster", "figures", "plugins", "publish")
simulated = {key: value for key, value in settings.items() if key not in shown}
numerics = {name: sweep.numerics(name) for name in sweep.runs}
if workflow.is_main_process and workflow.dag_settings:  # not again in the jobs, and not for the linter
    stale = sweeplib.storage.markers.stale_outputs(pathlib.Path(directory), sweep, remember=not workflow.dryrun)
    workflow.dag_settings.forcerun = {*workflow.dag_settings.forcerun, *map(str, stale)}
modest = {"mem_mb": 4000, "runtime": 120}  # of stages that do not simulate
failures = sweeplib.storage.attempts.past_failures(pathlib.Path(directory))


def code(stage):
    """Return the digests of subpackages of the library and of the code of plugins that a stage calls."""
    return sweeplib.storage.provenance.stage_code(stage, sweep.plugins)
