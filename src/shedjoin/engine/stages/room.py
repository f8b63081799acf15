"""Room: what has to grow before an instant, or a row, can begin."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import FIRST_OF_SETS, IN_WINDOW, ITEMS, KEYED, LEARNED, MOST, TIME
from shedjoin.engine.forms import in_pairs
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import indexed, items
from shedjoin.engine.protocol import (
    DONE,
    NEED_BUCKETS,
    NEED_CELLS,
    NEED_EXPIRY,
    NEED_ITEMS,
    NEED_KEYS,
    NEED_MARKS,
    NEED_POOL,
    NEED_SEEN,
    NEED_SHED,
    NEED_STRAYS,
    NEED_TIMELINE,
)
from shedjoin.engine.stages import remember

# An index that chooses its buckets itself keeps at most this many tuples in a bucket, on average.
CROWDED = 2


@kernel
def _is_crowded(state, size):
    """Whether an index that grows should have more buckets before `size` tuples more are stored."""
    for number in range(state["indexes_room"]):
        index = mem.indexes(state, number)
        if index["modular"] == 0 and index["attr"] >= 0:
            if state["resident"][index["stream"]] + size > CROWDED * index["many"]:
                return True
    return False


@inlined
def _values_of_pair(cfg, buffers, state, size):
    return size


@in_pairs(_values_of_pair)
@inlined
def _values_of_rows(cfg, buffers, state, size):
    """The most values that the rows of an instant can have."""
    if cfg["layout"] != ITEMS:
        return size * cfg["parts"]
    if cfg["predicate"] < FIRST_OF_SETS:
        return size
    if cfg["waits"]:
        return items.values_of_row(state, buffers)
    return mem.row_offsets(buffers)[buffers["end"]] - mem.row_offsets(buffers)[buffers["first"]] + size


@inlined
def _has_places_of_pair(cfg, state, size):
    return state["free_count"] >= size


@in_pairs(_has_places_of_pair)
@inlined
def has_places(cfg, state, size):
    """Whether the pool has room for this many tuples, whatever their streams."""
    if cfg["layout"] == ITEMS:
        return min(state["free_places"][0], state["free_places"][1]) >= size
    return state["free_count"] >= size


@inlined
def _keys_wanted(cfg, state, buffers, size):
    return NEED_KEYS if state["free_key_count"] < size else DONE


@in_pairs(_keys_wanted)
@kernel
def layout_wants(cfg, state, buffers, size):
    """What the layout needs for `size` rows."""
    if cfg["evaluate_every"] > 0 and (state["tick"] - state["first_mark"] + 2) * MOST > state["marks_room"]:
        return NEED_MARKS
    if cfg["layout"] == KEYED:
        return NEED_KEYS if state["free_key_count"] < size else DONE
    if cfg["layout"] == ITEMS:
        buffers["wanted"] = _values_of_rows(cfg, buffers, state, size)
        if cfg["waits"] == 0 and state["item_top"] + buffers["wanted"] > state["items_room"]:
            return NEED_ITEMS  # rows that wait have theirs already
        return NEED_KEYS if items.has_values(cfg) and state["free_key_count"] < buffers["wanted"] else DONE
    if _is_crowded(state, size):
        return NEED_BUCKETS
    if cfg["weighed"] and (cfg["alone"] == 0 or indexed.is_stocked(cfg, state)):
        buffers["wanted"] = size * cfg["parts"]
        if state["free_key_count"] < buffers["wanted"]:
            return NEED_KEYS
        buffers["wanted"] = size
        if cfg["alone"] == 0 and state["free_cell_count"] < size:
            return NEED_CELLS
    return DONE


@inlined
def _nothing_wanted(cfg, state, buffers, size):
    return DONE


@in_pairs(_nothing_wanted)
@kernel
def _selection_wants(cfg, state, buffers, size):
    """What selective processing needs for `size` rows."""
    if cfg["basic"] > 0:
        for stream in range(cfg["streams"]):
            if state["timeline_room"] - state["line_to"][stream] < (size if cfg["waits"] else buffers["rows"][stream]):
                return NEED_TIMELINE
    return DONE


@inlined
def _record_a_row(cfg, state, size):
    return size


@in_pairs(_record_a_row)
@inlined
def _records_of(cfg, state, size):
    """How many records of the shed log `size` rows can make: that they were late, and that they were compared with a part."""
    return 2 * size


@inlined
def _are_behind_clocks(cfg, state, buffers):
    ts = mem.row_ts(buffers, buffers["first"])
    for stream in range(cfg["streams"]):
        if buffers["rows"][stream] > 0 and ts < state["clock"][stream] and mem.window_kind(cfg, stream) == TIME:
            return True
    return False


@in_pairs(_are_behind_clocks)
@inlined
def _are_out_of_order(cfg, state, buffers):
    """Whether rows are to be stored that are older than others of their stream."""
    if cfg["waits"]:
        row = mem.waiting(state, buffers["row"])
        return row["ts"] < state["clock"][row["stream"]] and mem.window_kind(cfg, row["stream"]) == TIME
    return _are_behind_clocks(cfg, state, buffers)


@inlined
def wants(cfg, state, buffers, size):
    """What has to grow before an instant of `size` rows can begin."""
    buffers["wanted"] = size
    if not has_places(cfg, state, size):
        return NEED_POOL
    need = layout_wants(cfg, state, buffers, size)
    if need != DONE:
        return need
    need = _selection_wants(cfg, state, buffers, size)
    if need != DONE:
        return need
    buffers["wanted"] = _records_of(cfg, state, size)
    if buffers["out_shed_room"] - buffers["shed"] < buffers["wanted"]:
        return NEED_SHED
    buffers["wanted"] = size
    if state["stray_place_room"] == 1 and _are_out_of_order(cfg, state, buffers):
        return NEED_STRAYS
    span = 0
    for stream in range(cfg["streams"]):
        span = max(span, state["ring_to"][stream] - state["ring_from"][stream])
    if state["expiry_room"] - span < size:
        return NEED_EXPIRY
    if cfg["estimator"] == IN_WINDOW or cfg["estimator"] == LEARNED:
        buffers["wanted"] = _values_of_rows(cfg, buffers, state, size)
        for stream in range(cfg["streams"]):
            wanted = remember.rows_wanted(cfg, state, stream, buffers["wanted"])
            if state["seen_room"] - state["seen_size"][stream] < wanted:
                return NEED_SEEN
    return DONE
