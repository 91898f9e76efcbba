"""Dask's report on the performance of a run, kept with the results."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client

NAME = Path("report", "performance.html")


@contextmanager
def performance_kept(client: "Client", path: Path | None) -> Iterator[None]:
    """A context whose tasks are described in an HTML file at `path`, if it ends well; None: no file.

    The file needs no network. The report of a run that is interrupted would wait for workers that are gone.
    """
    if path is None:
        yield
        return
    from distributed import performance_report

    path.parent.mkdir(parents=True, exist_ok=True)
    with client.as_current(), ExitStack() as stack:
        stack.enter_context(performance_report(filename=str(path.resolve()), mode="inline"))
        try:
            yield
        except BaseException:
            stack.pop_all()
            raise
