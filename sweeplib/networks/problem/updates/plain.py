"""Plain steps, of the gradient times the learning rate."""

from sweeplib.networks.problem.updates.update import UPDATES, Update

UPDATES.add(Update(name="plain", label=r"-\gamma g"))
