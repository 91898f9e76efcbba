# What reruns a stage, in its `params`: the part of the config that it reads, a digest of the code that it calls, and how
# often it has failed, so that what failed is tried again.
import pathlib

import yaml

import sweeplib.storage.attempts
import sweeplib.storage.markers
import sweeplib.storage.provenance
import sweeplib.code.plugins

settings = yaml.safe_load(sweep.source)
shown = ("analyses", "cluster", "figures", "plugins")
simulated = {key: value for key, value in settings.items() if key not in shown}
sweeplib.storage.markers.remove_stale_markers(pathlib.Path(directory))
failures = sweeplib.storage.attempts.past_failures(pathlib.Path(directory))


def code(stage, *floors):
    """The digests of some floors of the library, and of what a stage calls of the sweep's own plugins."""
    return [
        sweeplib.storage.provenance.floors_digest(*floors),
        sweeplib.code.plugins.plugins_digest(sweep.plugins, stage),
    ]


numerics = {name: sweep.numerics(name) for name in sweep.runs}
