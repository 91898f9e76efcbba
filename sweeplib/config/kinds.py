"""The kinds of names that a config may use, and where they are registered; nothing is imported for it."""

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind: the word for one thing of it, and the module and the name there of the registry that has all."""

    singular: str
    module: str
    registry: str


KINDS = {
    "dynamics": Kind("dynamics", "sweeplib.networks.dynamics", "DYNAMICS"),
    "activations": Kind("activation", "sweeplib.networks.maths.activations", "ACTIVATIONS"),
    "analyses": Kind("analysis", "sweeplib.analysis", "ANALYSES"),
    "figures": Kind("figure", "sweeplib.pictures.figures", "FIGURES"),
    "observables": Kind("observable", "sweeplib.networks.observables", "OBSERVABLES"),
    "targets": Kind("target", "sweeplib.networks.problem.targets", "TARGETS"),
    "starts": Kind("start", "sweeplib.networks.problem.starts", "STARTS"),
    "data": Kind("data", "sweeplib.networks.problem.data", "DATA"),
    "losses": Kind("loss", "sweeplib.networks.problem.losses", "LOSSES"),
    "updates": Kind("update", "sweeplib.networks.problem.updates", "UPDATES"),
    "tasks": Kind("tasks", "sweeplib.networks.problem.tasks", "TASKS"),
    "clusters": Kind("cluster", "sweeplib.engine.execution.clusters", "CLUSTERS"),
    "proposers": Kind("proposer", "sweeplib.analysis.answers", "PROPOSERS"),
}
"""The kinds by their names in `list` and `explain`."""

KEYS, PLUGINS = "keys", "plugins"
"""The kinds of the keys of a config, and of the names of installed plugins, which are entry points."""

EVERY_KIND = [KEYS, *KINDS, PLUGINS]
"""What `list` lists."""

WITH_TEMPLATE = {kind.singular: name for name, kind in sorted(KINDS.items()) if name != "tasks"}
"""The names of the kinds of which there is a plugin to start from, by the word for one."""

FUNCTION = "function"
"""The kind of a function of one's own."""

FILES = ["sweep", FUNCTION, *WITH_TEMPLATE]
"""The kinds of files that `new` writes."""
