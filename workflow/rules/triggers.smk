# What makes a stage run again: its output is not what it would make now, by the manifests, or its last attempt failed.
import functools
import pathlib

import sweeplib.engine.storage.records.artefacts

modest = {"mem_mb": 4000, "runtime": 120}  # resources of stages that do not simulate
stale = functools.cache(
    lambda **options: sweeplib.engine.storage.records.artefacts.stale_outputs(pathlib.Path(directory), sweep, **options)
)
begin = functools.cache(lambda: sweeplib.commands.stages.begin(config["sweep"], sweep, directory))


def made_again(wildcards):
    """Return no input; stale outputs are forced, as by --forcerun, and stay in their place until their job starts."""
    if workflow.is_main_process:  # not in the jobs, whose inputs are some of them
        workflow.dryrun or begin()
        workflow.dag.forcefiles.update(map(str, stale(remember=not workflow.dryrun)))
    return []
