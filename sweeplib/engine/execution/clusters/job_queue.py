"""Base class of the kinds of clusters whose workers are jobs of a batch system, submitted by dask-jobqueue."""

import logging
import math
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import psutil
import pydantic
from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr
from pydantic_core import PydanticCustomError

from sweeplib.engine.base.validation import REFUSED
from sweeplib.engine.design.cluster import ClusterSettings
from sweeplib.engine.execution.clusters.certificates import own_certificates
from sweeplib.engine.execution.clusters.dashboard import DEFAULT_ADDRESS, DashboardAddress, free_address
from sweeplib.engine.execution.clusters.dashboard_access import HostName, websocket_origins
from sweeplib.engine.execution.clusters.job_keeper import JobKeeper, refusable
from sweeplib.engine.process.forks import ONE_THREAD
from sweeplib.engine.storage.records.files import write_text
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

NEVER = "100 days"
"""A time that no sweep reaches, as a setting of Dask."""
WORK_AHEAD = "1 s"
"""Submitted work for which another worker is asked for: less than that of the tasks per worker that are submitted."""
MOST_JOBS = 10_000
LEAST_MEMORY = 2**27
"""Bytes of a job."""
LEAST_WALLTIME = 60
"""Seconds."""
PART_OF_WALLTIME, MOST_SECONDS = 0.2, 600
"""A worker ends by itself before its walltime, by this part of it, but by no more than these seconds."""
INSTALLATION = "the package: `.venv/bin/python -m pip install dask-jobqueue -c constraints.txt`"


class Bounds(pydantic.BaseModel):
    """The smallest and the largest number of jobs of a cluster at a time."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    min: Annotated[int, Field(ge=0, le=MOST_JOBS)] = 0
    max: Annotated[int, Field(ge=1, le=MOST_JOBS)]


def _bounds(jobs: Any) -> Any:
    """Return a number of jobs as equal bounds; an error if a pair of bounds is not ordered."""
    expected = f"a number of jobs from 1 to {MOST_JOBS}, or bounds such as {{min: 0, max: 16}}"
    if isinstance(jobs, dict):
        lower, upper = jobs.get("min", 0), jobs.get("max")
        if isinstance(lower, int) and isinstance(upper, int) and lower > upper:
            raise PydanticCustomError(REFUSED, expected)
        return jobs
    if isinstance(jobs, Bounds):
        return jobs
    if not isinstance(jobs, int) or isinstance(jobs, bool) or not 1 <= jobs <= MOST_JOBS:
        raise PydanticCustomError(REFUSED, expected)
    return {"min": jobs, "max": jobs}


def _memory(memory: Any) -> Any:
    """Return the memory of a job, a size with a unit that dask-jobqueue can read; an error for anything else."""
    from dask.utils import parse_bytes

    with suppress(ValueError, OverflowError):
        if isinstance(memory, str) and re.search(r"[A-Za-z]", memory) and LEAST_MEMORY <= parse_bytes(memory) < 2**63:
            return memory
    raise PydanticCustomError(REFUSED, "a size from 128 MiB on with its unit, such as '8GB'")


def _walltime(walltime: Any) -> Any:
    """Return a walltime; an error unless it is HH:MM:SS, and long enough."""
    written = isinstance(walltime, str) and re.fullmatch(r"\d{1,4}:[0-5]\d:[0-5]\d", walltime)
    if not written or _seconds(walltime) < LEAST_WALLTIME:
        raise PydanticCustomError(REFUSED, "HH:MM:SS from 00:01:00 on, such as '04:00:00'")
    return walltime


def _seconds(walltime: str) -> int:
    """Return the seconds of a walltime HH:MM:SS."""
    hours, minutes, seconds = map(int, walltime.split(":"))
    return 3600 * hours + 60 * minutes + seconds


@contextmanager
def _handlers_of_signals_kept() -> Iterator[None]:
    """A context in which no handler of a signal is set: dask-jobqueue sets one for Ctrl-C as it is imported."""
    setter = signal.signal
    signal.signal = lambda number, handler: signal.getsignal(number)  # type: ignore[assignment]
    try:
        yield
    finally:
        signal.signal = setter


def _one_word(text: str) -> str:
    """Return the text itself; an error unless it is one word that a batch system takes as a name."""
    if not re.fullmatch(r"[\w.:,+@/-]+", text):
        raise PydanticCustomError(REFUSED, "a name")
    return text


def _in_one_line(text: str) -> str:
    """Return the text itself; an error if it is blank, or has a line break or another unprintable character."""
    if not text.strip() or not text.isprintable():
        raise PydanticCustomError(REFUSED, "a text in one line")
    return text


Word = Annotated[str, Field(max_length=200), AfterValidator(_one_word)]
OneLine = Annotated[str, Field(max_length=1000), AfterValidator(_in_one_line)]


class JobQueue(ClusterSettings):
    """Workers as jobs of a batch system, one worker per core; the scheduler is in the process that runs the sweep.

    Jobs are submitted as the sweep needs them, between bounds. Workers end by themselves before the walltime, between
    two blocks, and other jobs take their place.

    jobs : number of jobs, or the smallest and the largest number, such as {min: 0, max: 16}.
    cores : cores of a job; each runs a worker.
    memory : memory of a job, such as "8GB"; its workers share it evenly.
    walltime : time limit of a job as HH:MM:SS, such as "04:00:00"; workers end by themselves a fifth of it, at most ten
        minutes, before.
    interface : network interface of this machine and of the nodes through which they communicate, such as ib0; by
        default the one that leads to the internet.
    prologue : shell commands that each job runs before its workers start, such as `module load gcc`.
    directives : further options of a job, such as `--constraint=avx512` for SLURM.
    dashboard_address : address of Dask's dashboard; local unless a host is named; port 0 chooses a free port.
    dashboard_hosts : other names, HOST:PORT, under which browsers find the dashboard, such as those of a tunnel or a
        proxy; pages of other sites are refused.
    """

    cluster_class: ClassVar[str]
    """The name of dask-jobqueue's class for this batch system."""
    listing: ClassVar[tuple[str, ...]]
    """The command that lists the user's waiting and running jobs, with their number at the beginning of a line."""

    wait_for_workers: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] = 7 * 86400.0
    jobs: Annotated[Bounds, BeforeValidator(_bounds, json_schema_input_type=int | Bounds)] = Field(
        examples=[{"min": 0, "max": 16}]
    )
    cores: Annotated[int, Field(ge=1, le=1024)] = 1
    memory: Annotated[str, BeforeValidator(_memory)] = Field(examples=["8GB"])
    walltime: Annotated[str, BeforeValidator(_walltime)] = Field(examples=["04:00:00"])
    interface: Word | None = None
    prologue: tuple[OneLine, ...] = ()
    directives: tuple[OneLine, ...] = ()
    dashboard_address: DashboardAddress = DEFAULT_ADDRESS
    dashboard_hosts: tuple[HostName, ...] = Field(default=(), examples=[["localhost:9999"]])
    _folder: Path = PrivateAttr(Path("jobs"))
    _keeper: JobKeeper | None = PrivateAttr(None)

    def in_results(self, directory: Path) -> "JobQueue":
        """Return the same settings; the jobs' output and certificates go to `jobs/` in the results."""
        placed = self.model_copy()
        placed._folder = directory.resolve() / "jobs"
        return placed

    def check(self) -> None:
        """Raise InputError if jobs cannot be submitted from here, or cannot reach this machine."""
        command = self._job_class().submit_command
        if shutil.which(command) is None:
            problem = f"this machine cannot submit jobs: it has no command {command}"
            raise InputError(problem, key="cluster.kind", value=self._name(), expected="a login node of the cluster")
        interfaces = sorted(psutil.net_if_addrs())
        if self.interface is not None and self.interface not in interfaces:
            problem = "this machine has no such network interface"
            raise InputError(problem, key="cluster.interface", value=self.interface, expected=", ".join(interfaces))
        if re.search(r"\s", str(self._folder)):
            raise InputError("jobs cannot write to a path with spaces", value=str(self._folder))

    def expected_workers(self, workers: int | None = None) -> int:
        """Return the largest number of workers: that of the cores of all jobs."""
        return self._bounds(workers).max * self.cores

    def workers_here(self) -> None:
        """Return None: the workers run elsewhere."""

    def known_memory(self, workers: int | None = None) -> int:
        """Return the bytes of memory of a worker: its share of a job's."""
        from dask.utils import parse_bytes

        return int(parse_bytes(self.memory) // self.cores)

    def resources(self, cpu_seconds: float) -> str:
        """Return in words the core-hours and jobs that `cpu_seconds` of work need at most.

        The time in which workers start or wait is not counted.
        """
        number = math.ceil(cpu_seconds / (self.cores * self.lifetime[0]))
        at_once = f"{self.jobs.max} job{'s' * (self.jobs.max > 1)} of {self.cores} core{'s' * (self.cores > 1)}"
        whole = f"{number:,} job{'s' * (number != 1)} of {self.walltime} in all"
        return f"up to {cpu_seconds / 3600:.3g} core-hours: {whole}, up to {at_once} at a time"

    @property
    def lifetime(self) -> tuple[float, float]:
        """Return the seconds after which a worker ends by itself, and the largest random deviation from them.

        The deviation, half of what is left until the walltime, makes workers end one after the other.
        """
        margin = min(PART_OF_WALLTIME * _seconds(self.walltime), MOST_SECONDS)
        return _seconds(self.walltime) - margin, margin / 2

    def job_script(self) -> str:
        """Return the text of a job; the address of the scheduler and the name of the worker are placeholders."""
        return self._job_class()("tls://SCHEDULER:8786", name="NAME", **self._options()).job_script()

    @contextmanager
    def client(self, workers: int | None = None) -> Iterator["Client"]:
        """Yield a client of a cluster whose jobs end with the context. InputError if dask-jobqueue is not installed."""
        import dask
        from distributed import Client

        from sweeplib.engine.execution.whole_jobs import WholeJobs

        bounds, folder, kind = self._bounds(workers), self._folder.resolve(), self._kind()
        address = free_address(self.dashboard_address)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "job.sh", self.job_script())
        # Jobs whose workers are gone are the keeper's: Dask would cancel one whose last block is still being written.
        with (
            dask.config.set({"distributed.deploy.lost-worker-timeout": NEVER}),
            websocket_origins(address, self.dashboard_hosts),
            refusable(kind)(
                **self._options(),
                security=own_certificates(),
                shared_temp_directory=str(folder),
                silence_logs=logging.CRITICAL,
                scheduler_options={"dashboard_address": address},
            ) as cluster,
            Client(cluster) as client,
        ):
            self._keeper = JobKeeper(cluster, self.listing, folder)
            cluster.adapt(
                WholeJobs, minimum=bounds.min, maximum=bounds.max, cores=self.cores, target_duration=WORK_AHEAD
            )
            yield client

    def abandon(self, client: "Client") -> None:
        """Cancel all jobs, by a shell in the background: a batch system may take long to answer."""
        jobs = [job.job_id for job in client.cluster.workers.values() if job.job_id]
        if jobs:
            command = [self._job_class().cancel_command, *jobs]
            subprocess.run(["sh", "-c", '"$@" >/dev/null 2>&1 &', "sh", *command], check=False)

    def problem(self) -> str | None:
        """Return why no worker will come: jobs are refused, or end before their workers start. None if one may come."""
        return self._keeper.problem if self._keeper else None

    def _bounds(self, workers: int | None) -> Bounds:
        """Return the smallest and the largest number of jobs, by the config or for a number of workers."""
        if workers is None:
            return self.jobs
        most = -(-workers // self.cores)
        if most > MOST_JOBS:
            expected = f"at most {MOST_JOBS} jobs of {self.cores} workers"
            raise InputError("too many workers", key="workers", value=workers, expected=expected)
        return Bounds(min=min(self.jobs.min, most), max=most)

    def _name(self) -> str:
        """Return the name of this kind of cluster in a config."""
        return str(type(self).model_fields["kind"].default)

    def _kind(self) -> Any:
        """Return dask-jobqueue's class of such clusters; InputError if it is not installed."""
        try:
            with _handlers_of_signals_kept():
                import dask_jobqueue
        except ImportError:
            problem = "dask-jobqueue is not installed"
            raise InputError(problem, key="cluster.kind", value=self._name(), expected=INSTALLATION) from None
        return getattr(dask_jobqueue, self.cluster_class)

    def _job_class(self) -> Any:
        """Return dask-jobqueue's class of a job of this batch system."""
        return self._kind().job_cls

    def _options(self) -> dict[str, Any]:
        """Return the arguments of dask-jobqueue's class that say what a job asks for, runs and writes."""
        lifetime, stagger = self.lifetime
        return {
            "cores": self.cores,
            "processes": self.cores,
            "memory": self.memory,
            "walltime": self.walltime,
            "interface": self.interface,
            "job_name": "sweeplib",
            "log_directory": str(self._folder),
            "job_script_prologue": [
                *self.prologue,
                *(f"export {name}=1" for name in (*ONE_THREAD, "PYTHONSAFEPATH")),
            ],
            "job_extra_directives": list(self.directives),
            "worker_extra_args": [
                *("--lifetime", f"{lifetime:g}s", "--lifetime-stagger", f"{stagger:g}s"),
                "--no-dashboard",
            ],
        } | self.of_this_kind()

    def of_this_kind(self) -> dict[str, Any]:
        """Return dask-jobqueue's options that only this batch system has."""
        return {}
