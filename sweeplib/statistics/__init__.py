"""Estimators over seeds and laws along an axis, with intervals; nothing here knows a network.

`estimators` has means, quantiles and fractions, `survival` those of censored times, and `lost_runs` when a cell has
none; `bootstrap` draws errors over the seeds. `fits` has lines and powers through means with errors; `slopes` has
powers of time, `exponents` powers of d with departures, `growth_laws` n(d). `optima` and `smooth_curve` have optima
and crossings, `extrapolation` limits.
"""
