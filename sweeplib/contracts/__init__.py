"""Contracts: what everything that is registered must keep, as checks of one thing each, for tests and for plugins."""
