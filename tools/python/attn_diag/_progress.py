"""What long work is at, on one line of a terminal, or for a function of the caller's."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import Callable, Optional, Type, Union

Wanted = Union[bool, Callable[[str], None], None]


class Progress:
    """True: on stderr; a function gets each line; None: on stderr where that is a terminal."""

    def __init__(self, wanted: Wanted):
        self._tell = wanted if callable(wanted) else None
        self._shown = sys.stderr.isatty() if wanted is None else wanted is True
        self._last = 0.0
        self._width = 0

    def say(self, line: str) -> None:
        if self._tell is not None:
            self._tell(line)
        elif self._shown and time.monotonic() - self._last > 0.1:
            self._last = time.monotonic()
            line = line[:shutil.get_terminal_size().columns - 1]
            sys.stderr.write("\r" + line.ljust(self._width))
            sys.stderr.flush()
            self._width = len(line)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
