"""Estimators over seeds and laws along an axis, with intervals; nothing here knows a network."""
