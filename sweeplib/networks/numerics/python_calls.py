"""Compiled functions that Python calls: one of each template, for all who call it."""

from collections.abc import Callable
from functools import cache
from typing import Any

from sweeplib.networks.numerics.compiled import OneSignature


@cache
def compiled(template: Callable[..., Any]) -> OneSignature:
    """The template, compiled for the types of the arguments that it is called with first."""
    return OneSignature(template)
