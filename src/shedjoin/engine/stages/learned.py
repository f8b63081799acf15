"""What other stages ask of Prospect. Two keyed streams have it compiled in; others get it compiled apart, when it is used."""

from __future__ import annotations

from shedjoin.engine.forms import in_pairs
from shedjoin.engine.indirect import indirect
from shedjoin.engine.jit import kernel
from shedjoin.engine.stages import learn


@indirect("learn key")
def _observe_apart(how, st, stream, v):
    learn.observe(how, st, stream, v)


@in_pairs(learn.observe)
@kernel
def observe(how, st, stream, v):
    """A row of a key has come."""
    _observe_apart(how, st, stream, v)


@indirect("look at key")
def _look_apart(how, st, v):
    learn.look(how, st, v)


@in_pairs(learn.look)
@kernel
def look(how, st, v):
    """Weigh a key by what is known of it now."""
    _look_apart(how, st, v)


@indirect("look at lowest")
def _look_before_apart(how, st, stream):
    learn.look_before(how, st, stream)


@in_pairs(learn.look_before)
@kernel
def look_before(how, st, stream):
    """Weigh the lowest keys of a stream again, before one of them goes."""
    _look_before_apart(how, st, stream)


@indirect("is key negligible", "truth")
def _is_negligible_apart(how, st, v):
    return learn.is_negligible(how, st, v)


@in_pairs(learn.is_negligible)
@kernel
def is_negligible(how, st, v):
    """Whether next to nothing is remembered of a key."""
    return _is_negligible_apart(how, st, v)
