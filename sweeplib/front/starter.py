"""A commented sweep to start from."""

from pathlib import Path

from sweeplib.errors import InputError

TEXT = """\
# A sweep of sweeplib. What it costs:   sweeplib plan {file}
# From here to the report:              sweeplib sweep {file}
# Other values for one run:             sweeplib sweep {file} seeds=64 grid.d=300,1000
# Names and options:                    sweeplib list dynamics   (activations, analyses, figures, ...)

# What all points share: student width p, teacher width k, label noise Delta, activation.
problem: {{p: 1, k: 1, Delta: 0, activation: square, spherical: true}}

# The axes; all combinations are run. Each has a list of values or a spacing.
grid:
  d: [300, 1000]
  gamma: {{linspace: [0.03, 0.14, 6]}} # the learning rate

seeds: 32 # replicas of each point; more can be added later

dynamics: [sgd_chain, ode] # SGD in law, at a cost that does not depend on d, and its limit

times: {{linspace: [0, 12, 25]}} # when to record, in units of p d/gamma steps; the last is the horizon
thresholds: [0.01] # a run exits when the risk has fallen by this fraction
stop: exit # or `end`: go on to the horizon

analyses: [exit_times, optimal_learning_rate]
figures: [learning_rate_scan]
"""


def write_starter(file: Path) -> Path:
    """Write a commented sweep; InputError if the file exists or is not called *.yaml."""
    if file.suffix not in (".yaml", ".yml"):
        raise InputError("not the name of a sweep's file", value=str(file), expected="a new file, NAME.yaml")
    if file.exists():
        raise InputError("there is such a file", file=file, expected="a new file")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="utf-8") as new:
        new.write(TEXT.format(file=file))
    return file
