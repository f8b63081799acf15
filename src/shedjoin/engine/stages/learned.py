"""What other stages ask of Prospect. Two keyed streams have it compiled in; others get it compiled apart, when it is used."""

from __future__ import annotations

from shedjoin.engine.forms import in_pairs
from shedjoin.engine.indirect import indirect
from shedjoin.engine.jit import kernel
from shedjoin.engine.stages import learn


@indirect("learn key")
def _observe_apart(cfg, state, stream, v):
    learn.observe(cfg, state, stream, v)


@in_pairs(learn.observe)
@kernel
def observe(cfg, state, stream, v):
    """A row of a key has come."""
    _observe_apart(cfg, state, stream, v)


@indirect("look at key")
def _look_apart(cfg, state, v):
    learn.look(cfg, state, v)


@in_pairs(learn.look)
@kernel
def look(cfg, state, v):
    """Weigh a key by what is known of it now."""
    _look_apart(cfg, state, v)


@indirect("look at lowest")
def _look_before_apart(cfg, state, stream):
    learn.look_before(cfg, state, stream)


@in_pairs(learn.look_before)
@kernel
def look_before(cfg, state, stream):
    """Weigh the lowest keys of a stream again, before one of them goes."""
    _look_before_apart(cfg, state, stream)


@indirect("is key negligible", "truth")
def _is_negligible_apart(cfg, state, v):
    return learn.is_negligible(cfg, state, v)


@in_pairs(learn.is_negligible)
@kernel
def is_negligible(cfg, state, v):
    """Whether next to nothing is remembered of a key."""
    return _is_negligible_apart(cfg, state, v)
