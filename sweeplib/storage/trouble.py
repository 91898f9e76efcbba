"""What is told of an exception: text of bounded length that can be written to any file."""

import traceback
from dataclasses import dataclass

MOST_OF_A_MESSAGE = 4_000
MOST_OF_A_TRACEBACK = 40_000


@dataclass(frozen=True)
class Trouble:
    """An exception in a line or more, and its traceback; both may be shortened in their middle."""

    exception: str
    traceback: str = ""

    @classmethod
    def of(cls, error: BaseException) -> "Trouble":
        """What is told of an exception."""
        message = "".join(traceback.format_exception_only(error)).strip()
        return cls(
            bounded(message, MOST_OF_A_MESSAGE),
            bounded("".join(traceback.format_exception(error)), MOST_OF_A_TRACEBACK),
        )


def bounded(text: str, most: int) -> str:
    """A text without what UTF-8 cannot encode, and without its middle where it is longer than `most` characters."""
    if len(text) > most:
        left_out = len(text) - most
        text = f"{text[: most // 2]}\n... {left_out} characters left out ...\n{text[len(text) - most // 2 :]}"
    return text.encode("utf-8", "backslashreplace").decode()
