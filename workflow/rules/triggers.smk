# What reruns a stage, in its `params`: the part of the config that it reads, and a digest of the floors that it calls.
import yaml

import sweeplib.storage.provenance

settings = yaml.safe_load(sweep.source)
physics = {key: value for key, value in settings.items() if key not in ("analyses", "cluster", "dynamics", "figures")}
floors = sweeplib.storage.provenance.floors_digest
numerics = floors("problem", "maths", "random", "dynamics", "observables", "simulate")
