"""Proposer: what looks at the rows that there are, and asks for those that a question needs."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

from sweeplib.analysis.answers.answer import Answer
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.base.registry import Registry
from sweeplib.engine.code.plugins import reason_in_user_code
from sweeplib.engine.design.questions import Question
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError, SweeplibError


class Proposer(Protocol):
    """The proposer of one question.

    It is told the whole dataset after each round. It remembers nothing: the same dataset gives the same answers and
    requests, whatever came before.

    example : an entry of `answers` for which it is made, which the contract of proposers runs.
    """

    example: ClassVar[Mapping[str, Any]]

    def __init__(self, name: str, question: Question) -> None: ...

    @classmethod
    @abstractmethod
    def takes(cls, question: Question) -> bool:
        """Return whether this class is made for a question."""

    @abstractmethod
    def check(self, outline: Outline, options: Mapping[str, Any]) -> None:
        """Raise InputError, at its key, if the question does not fit the sweep. It is called before anything runs.

        outline : the structure of the dataset of the sweep, without numbers. options : those of the analysis that the
            question names.
        """

    @abstractmethod
    def tell(self, ds: "xr.Dataset", options: Mapping[str, Any]) -> list[Answer]:
        """Return the answers at all points, each with its requests, from the dataset of all rows so far.

        options : those of the analysis that the question names.
        """


PROPOSERS: Registry[type[Proposer]] = Registry("proposer", contract=Proposer)


def proposer_of(name: str, question: Question) -> Proposer:
    """Return a new proposer for the question `name`: a plugin's that takes it, else sweeplib's.

    InputError, at the key of the question, if no proposer takes it, or several of plugins do.
    """
    taking = [proposer for proposer in PROPOSERS if _takes(proposer, name, question)]
    of_plugins = [proposer for proposer in taking if not PROPOSERS.origin(proposer).startswith("sweeplib.")]
    if len(of_plugins) > 1:
        problem = f"several proposers of plugins take it: {', '.join(of_plugins)}"
        raise InputError(problem, key=f"answers.{name}", expected="one, by `plugins`")
    for proposer in of_plugins or taking:
        with explained(PROPOSERS[proposer], name):
            return PROPOSERS[proposer](name, question)
    axes = ", ".join(question.bounds)
    problem = f"nothing proposes values of {axes} for {question.of}, {question.variable}"
    expected = "`refine: seeds`, or for `optimal_learning_rate`, `optimum` and `crossing` their axis with its bounds"
    raise InputError(problem, key=f"answers.{name}.refine", expected=expected)


def _takes(proposer: str, name: str, question: Question) -> bool:
    """Return whether the `proposer` of PROPOSERS is made for the question `name`; InputError if it raises."""
    with explained(PROPOSERS[proposer], name):
        return PROPOSERS[proposer].takes(question)


@contextmanager
def explained(proposer: type[Proposer], name: str) -> Iterator[None]:
    """A context in which the proposer of the question `name` is called.

    An exception of a plugin's proposer becomes an InputError at the key of the question.
    """
    try:
        yield
    except Exception as error:
        # an exception of our own proposers is a bug, of which the traceback is wanted
        if isinstance(error, SweeplibError) or proposer.__module__.startswith("sweeplib."):
            raise
        problem = f"its proposer, {proposer.__name__}, fails: {reason_in_user_code(error)}"
        raise InputError(problem, key=f"answers.{name}", expected="see `sweeplib test-plugin`") from error
