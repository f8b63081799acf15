"""Progress of slow commands: a spinner in a terminal, otherwise lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def progress(console: Console, text: str) -> Iterator[Callable[[str], None]]:
    """Say what is being done, and with the function that is given what is done next."""

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    if not console.is_terminal:
        say(text)
        yield say
        return
    with console.status(text) as status:
        yield status.update
