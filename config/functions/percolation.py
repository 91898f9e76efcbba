"""Percolation in C, beside this file: cc -O2 -o percolation percolation.c."""

from sweeplib import Result, program

spans = Result("1", label="chance of a path")
percolation = program("./percolation {density} {L} {seed}", parameters={"L": int}, spans=spans)
