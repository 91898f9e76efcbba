# What reruns a stage, in its `params`: the part of the config that it reads, and a digest of the code that it calls.
import hashlib
import pathlib

import yaml

import sweeplib.storage.provenance

settings = yaml.safe_load(sweep.source)
simulated = {key: value for key, value in settings.items() if key not in ("analyses", "cluster", "figures")}
plugins = [pathlib.Path(name).read_bytes() for name in sweep.plugins if name.endswith(".py")]


def code(*floors):
    """The digests of some floors of the library, and of the sweep's own plugins."""
    return [sweeplib.storage.provenance.floors_digest(*floors), *(hashlib.sha256(each).hexdigest() for each in plugins)]


numerics = code("problem", "maths", "random", "dynamics", "observables", "simulation", "sources")
