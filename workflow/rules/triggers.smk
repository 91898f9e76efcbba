# The `params` that make a stage run again: the part of the config that it reads, a digest of the code that it calls, and
# the number of its failures, so that failed attempts are repeated.
import pathlib

import yaml

import sweeplib.storage.attempts
import sweeplib.storage.markers
import sweeplib.storage.provenance

settings = yaml.safe_load(sweep.source)
shown = ("analyses", "cluster", "figures", "plugins", "publish")
simulated = {key: value for key, value in settings.items() if key not in shown}
numerics = {name: sweep.numerics(name) for name in sweep.runs}
if workflow.is_main_process:  # not again in the jobs, whose inputs are some of the markers
    sweeplib.storage.markers.remove_stale_markers(pathlib.Path(directory), sweep)
failures = sweeplib.storage.attempts.past_failures(pathlib.Path(directory))


def code(stage):
    """Return the digests of subpackages of the library and of the code of plugins that a stage calls."""
    return sweeplib.storage.provenance.stage_code(stage, sweep.plugins)
