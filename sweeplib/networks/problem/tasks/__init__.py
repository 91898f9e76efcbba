"""Courses of tasks: what a student learns, and when, one per file."""

from sweeplib.engine.base.registry import import_modules
from sweeplib.networks.problem.tasks.tasks import TASKS, Course, Tasks

__all__ = ["TASKS", "Course", "Tasks"]

import_modules(__name__, __path__)
