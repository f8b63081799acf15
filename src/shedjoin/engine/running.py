"""What all running joins have in common: there is one of each, and it is either idle or in the middle of a push."""

from __future__ import annotations

from shedjoin.engine.handle import Unique
from shedjoin.errors import InputError


class Running(Unique):
    """A join that runs."""

    _busy = False  # whether rows are on their way

    def _check_idle(self) -> None:
        if self._busy:
            raise InputError(
                "this engine is in the middle of a push: take all pieces of the last `chunks` first; after an interruption go on "
                "from the last snapshot"
            )
