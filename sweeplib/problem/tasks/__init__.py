"""Courses of tasks: what a student learns, and when, one per file."""

from sweeplib.problem.tasks.tasks import TASKS, Course, Tasks
from sweeplib.registry import import_modules

__all__ = ["TASKS", "Course", "Tasks"]

import_modules(__name__, __path__)
