"""A call in a fork (`process.forks`), or else in this process: `python -m sweeplib.job MODULE:FUNCTION ARGUMENTS`."""

import sys

from sweeplib.process.forks import function, ran

if __name__ == "__main__":  # Dask's workers import this file too
    status = ran(*sys.argv[1:])
    if status is not None:
        sys.exit(status)
    function(sys.argv[1])(*sys.argv[2:])
