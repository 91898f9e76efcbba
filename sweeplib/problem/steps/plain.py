"""Plain steps, of the gradient times the learning rate."""

from sweeplib.problem.steps.step import STEPS, Step

STEPS.register("plain", Step(name="plain", label=r"-\gamma g"))
