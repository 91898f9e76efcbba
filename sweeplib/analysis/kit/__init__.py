"""What analyses are made of: samples of first passages, differences and values by seed, options, labels, headlines.

`passages` says what a run counts as that did not exit: censored, never or lost. `problem_fields` and `variables` read
a dataset; `combination` and `sweep_axis` join several; `headlines` are the lines at the end of a command.
"""
