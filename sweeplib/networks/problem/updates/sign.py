"""Steps of signs (signSGD): each weight moves by γ/(p √d), in the direction of the sign of its gradient."""

from sweeplib.networks.problem.updates.update import UPDATES, Update

UPDATES.add(Update("sign", r"-\gamma\,\mathrm{sgn}(g)/\sqrt{d}", loss="absolute", takes_signs=True))
