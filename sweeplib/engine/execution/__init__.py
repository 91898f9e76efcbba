"""Execution of a sweep: its plan, the cluster, the blocks of cases and their limits.

`plan`, `pilots` and `calibration` say what a run will cost. `run` is the whole of it: `queue` cuts missing cases into
blocks, `work` and `dispatch` hand them out, again where workers die, and `blocks` is the task of a worker. `guard`
decides which case failed or was killed; `child` is the process in which suspects run. `clusters` has a kind a file.
"""
