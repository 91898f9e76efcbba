"""Integrators of many systems of ordinary differential equations."""
