"""The compiled steps of the dynamics, and the right-hand sides of their ODEs.

The step of the overlap chain is in `chain`, and in `chain_batches`, `chain_reuse` and `replay` for batches, reused
batches and tasks; `chain_state` has its state, for inputs of one eigenvalue or more, `chain_rows` what steps do with
rows, `chain_frames` steps with rows written out. That of SGD on the weights in `weights`, `batches` and `training_set`;
that of the SDE in `sde`. Samples of SGD are drawn in `sample_blocks`. The right-hand sides of ODEs are in the modules
`*_flow`. `steps` has the rules of updates, and `chain_rules` what these make of a step of the chain. `lanes` runs many
replicas at once, and notes their exits; `weights` notes those of SGD.

Kernels have no types: docstrings say the shapes. T is the ODE time of a step, γ/(pd) times the schedule ξ of the rate.
"""
