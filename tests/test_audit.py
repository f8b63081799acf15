"""What a snapshot says is checked before it is run: honest ones pass, forged ones are refused or do no harm."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from forging import FORGED, case_of, encoded, stopped
from naive import Row
from shedjoin.engine import audit, learn, neighbours
from shedjoin.engine.handle import Handle
from strategies import INTERPRETED, WINDOWS, Case, Chooser, Combination, cases, for_all, go_on, run_engine

EVERY_POLICY = pytest.mark.parametrize("chooser", FORGED, ids=str)


# ------------------------------------------------------------------------------------------------------------- honest


def grown_case(chooser: Chooser) -> Case:
    """A join for which every array has grown, shelves have moved and keys were forgotten."""
    case = case_of(chooser)
    random = Random(str(chooser))
    rows = []
    for number in range(9000):
        key = random.choice((random.randrange(40), number // 3))
        ts = number // 6 - random.choice((0, 0, 0, 1))
        rows.append(Row(random.randrange(2), key, ts, random.choice((1.0, 2.0, 7.5)), random.choice((100, 192))))
    # A burst at the end of the first third, larger than any array was to begin with.
    rows[3000:3000] = [Row(i % 2, 10**6 + i // 2, 500, 1.0, 100) for i in range(3000)]
    policy = case.spec.policy
    if isinstance(policy, sj.Replay):
        until = [[row.ts + random.randrange(900) for row in rows if row.stream == stream] for stream in (0, 1)]
        policy = sj.Replay(*until)
    budget = None if case.spec.budget is None else replace(case.spec.budget, tuples=1500, bytes=None)
    spec = sj.JoinSpec(sj.TimeWindow(700), budget, policy, lateness=2)
    return Case(spec, rows, cuts=list(range(500, len(rows), 1000)), seed=1)


@EVERY_POLICY
def test_an_engine_that_has_grown_goes_on(chooser: Chooser) -> None:
    case = grown_case(chooser)
    engine = case.spec.build(seed=case.seed)
    for number in range(len(case.pushes)):
        saved = engine.snapshot()
        again = case.spec.resume(saved)
        assert all(array.ctypes.data % 64 == 0 for array in again._state.arrays.values())
        if chooser.policy != "life":  # its tournaments were played again
            assert again.snapshot() == saved
        assert go_on(again, case, number, number + 1) == go_on(engine, case, number, number + 1)
    assert engine._state.arrays["pool"].size > 1024
    assert engine._state.arrays["keys"].size > 1024


@pytest.mark.small
@pytest.mark.parametrize("window", WINDOWS)
def test_an_exact_join_goes_on(window: str) -> None:
    """(The laws say the same of every policy.)"""

    def check(case: Case) -> None:
        engine = case.spec.build()
        told = []
        for number in range(len(case.pushes)):
            engine = case.spec.resume(engine.snapshot())
            told += go_on(engine, case, number, number + 1)
        assert told == run_engine(case)

    for_all(cases(Combination(Chooser("keep_all"), None, window)), check, label=f"resumed {window}", examples=20)


@pytest.mark.small
def test_lengths_are_measured_not_believed() -> None:
    engine, _ = stopped(case_of(Chooser("rand")))
    room = int(engine._state["pool_room"])
    engine._state["pool_room"] = 10**12
    assert case_of(Chooser("rand")).spec.resume(encoded(engine))._state["pool_room"] == room


# ------------------------------------------------------------------------------------------------------------- forged


@pytest.mark.small
def test_a_forged_snapshot_is_refused_or_does_no_harm() -> None:
    """In a process of its own: see `forging`."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "forging.py", "0.1" if INTERPRETED else "0.2"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=600,
    )
    said = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, (said, done.returncode, done.stderr[-1000:])
    refused, tried = (int(number) for number in said[0].removesuffix(" refused").split(" of "))
    # The rest are numbers that may be anything: totals, priorities, places that are not in use.
    assert refused > tried / 4


def resident(st: Handle, stream: int = 0) -> int:
    """Some stored tuple."""
    pool, free = st.arrays["pool"], st.arrays["free"][: int(st["free_count"])]
    return int(np.setdiff1d(np.flatnonzero(pool["stream"] == stream), free)[0])


def side_of(st: Handle) -> Any:
    """Where the key of some stored tuple has its tuples."""
    return st.arrays["sides"][st.arrays["pool"]["slot"][resident(st)]]


def put(array: str, at: Any, value: Any, part: str | None = None) -> Callable[[Handle], None]:
    def change(st: Handle) -> None:
        numbers = st.arrays[array][part] if part else st.arrays[array]
        numbers[at] = value

    return change


def number(name: str, value: Any) -> Callable[[Handle], None]:
    def change(st: Handle) -> None:
        st[name] = value

    return change


def of_tuple(part: str, value: int) -> Callable[[Handle], None]:
    def change(st: Handle) -> None:
        st.arrays["pool"][part][resident(st)] = value

    return change


def of_side(part: str, value: Any) -> Callable[[Handle], None]:
    def change(st: Handle) -> None:
        side_of(st)[part][0] = value

    return change


def of_card(part: str, value: Any) -> Callable[[Handle], None]:
    def change(st: Handle) -> None:
        st.arrays["shelf"][part][st.arrays["pool"]["place"][resident(st)]] = value

    return change


def cut_array(name: str, size: int) -> Callable[[Handle], None]:
    def change(st: Handle) -> None:
        st.hold(**{name: st.arrays[name][..., :size]})

    return change


def circle_of_keys(st: Handle) -> None:
    """A key that follows itself and is in no bucket: it is referred to once, and never found."""
    keys, buckets = st.arrays["keys"], st.arrays["buckets"]
    heads = np.flatnonzero(buckets != -1)
    bucket = int(heads[keys["next"][buckets[heads]] == -1][0])
    keys["next"][buckets[bucket]] = buckets[bucket]
    buckets[bucket] = -1


def circle_of_shelves(st: Handle) -> None:
    number = int(np.flatnonzero(st["free_shelf"] != -1)[0])
    head = int(st["free_shelf"][number])
    st.arrays["shelf"]["item"][head] = head


def circle_of_tuples(st: Handle) -> None:
    """Two tuples of a key that hang on each other."""
    more = st.arrays["more"]
    low = st.arrays["sides"]["low"]
    root = int(next(x for x in low[st.arrays["sides"]["count"] > 2] if more["child"][x] != -1))
    x = int(more["child"][root])
    more["child"][root] = more["sibling"][x]
    more["sibling"][x] = x
    more["back"][x] = x


def shelves_on_each_other(st: Handle) -> None:
    sides = st.arrays["sides"]
    sides["shelf"][sides["room"] > 0] = sides["shelf"][sides["room"] > 0][0]


def highest_in_front(st: Handle) -> None:
    st["front"] = st["heap_size"].copy()
    st["bound"] = np.inf
    st.arrays["heap"]["prio"] = -np.arange(st.arrays["heap"].shape[1])


RAND, KEYS, TREES, LIFE, HEAP, GAINS, WINDOW, DECAYED, SKETCH, REPLAY, KEEP = (
    Chooser("rand"),
    Chooser("prob", "history"),
    Chooser("dimp_prob", "table"),
    Chooser("life", "in_memory"),
    Chooser("simp"),
    Chooser("dgl", "in_memory"),
    Chooser("prob", "in_window"),
    Chooser("prob", "decayed"),
    Chooser("prob", "count_min"),
    Chooser("replay"),
    Chooser("keep_all"),
)
LEARNS = Chooser("prospect")
WRONG: list[tuple[Chooser, Callable[[Handle], None], str]] = [
    (RAND, cut_array("pool", 1000), "pool has 1000 places, not a power of two"),
    (RAND, cut_array("pool", 512), "pool has 512 places"),
    (RAND, cut_array("place", 512), "place has the shape"),
    (RAND, cut_array("expiry", 0), "expiry has 0 places"),
    (SKETCH, cut_array("sketch", 3), "sketch has the shape"),
    (REPLAY, cut_array("until1", 3), "until1 has the shape"),
    (RAND, number("tick", -1), "tick is -1"),
    (RAND, number("rows", 2**62), "rows, .* have arrived"),
    (RAND, number("arrived", -1), "rows have arrived"),
    (RAND, number("touched_count", 5), "touched"),
    (RAND, number("random", 0), "random state"),
    (RAND, number("importance", np.nan), "summed importance"),
    (RAND, number("clock", 2**60), "a clock shows"),
    (RAND, number("base", 2**62), "life on stream 0 is counted from"),
    (GAINS, number("lift_tick", 2**40), "lifted from the instant"),
    (REPLAY, put("until0", 0, -7), "schedule of stream 0"),
    (RAND, number("free_count", 2000), "tuples are free"),
    (RAND, put("free", 0, 5000), "free place is none"),
    (RAND, put("free", slice(0, 2), 1000), "free twice"),
    (RAND, number("free_key_count", -1), "keys are free"),
    (RAND, number("resident", 3), "are counted"),
    (RAND, number("stored_bytes", 3), "are counted"),
    (RAND, of_tuple("slot", 5000), "key that there is not"),
    (RAND, of_tuple("slot", 1023), "key that is not known"),
    (RAND, of_tuple("stream", 2), "stream other than"),
    (RAND, of_tuple("bytes", -1), "no bytes"),
    (RAND, of_tuple("arrival", 10**9), "not arrived"),
    (RAND, of_tuple("place", 0), "said to stand elsewhere"),
    (RAND, of_tuple("queued", 1000), "expire elsewhere"),
    (RAND, put("buckets", 0, 99999), "bucket begins"),
    (RAND, lambda st: st.arrays["buckets"][::-1].sort(), "wrong bucket"),
    (RAND, put("keys", slice(None), 1, "next"), "exactly one chain"),
    (RAND, lambda st: put("keys", st.arrays["pool"]["slot"][resident(st)], 12345, "key")(st), "wrong bucket"),
    (KEYS, circle_of_keys, "circle"),
    (RAND, of_side("room", 3), "power of two"),
    (RAND, of_side("room", 2**30), "overlap"),
    (RAND, of_side("first", 1000), "begins outside"),
    (RAND, of_side("span", 1000), "more than it has room for"),
    (RAND, of_side("shelf", 10**9), "overlap or leave a hole"),
    (RAND, shelves_on_each_other, "overlap"),
    (RAND, number("shelf_top", 10**9), "shelves reach up"),
    (RAND, number("free_shelf", 10**9), "does not end or leads out"),
    (KEYS, circle_of_shelves, "does not end or leads out"),
    (RAND, of_card("item", 10**6), "tuple that there is not"),
    (RAND, of_card("item", -1), "shelf holds not as many|begins or ends with a gap"),
    (RAND, of_card("ts", 2**53), "after its stream's clock"),
    (RAND, of_card("seq", -1), "row that has not arrived"),
    (RAND, of_card("importance", np.nan), "importance is not finite"),
    (RAND, number("ring_from", -1), "ring of expiry goes"),
    (RAND, number("ring_to", 2**61), "ring of expiry goes"),
    (KEEP, number("ring_newest", 2**52), "newest in the ring"),
    (KEEP, put("expiry", slice(None), 10**6, "item"), "ring of expiry is not there"),
    (RAND, number("stray_size", 1), "expire, of"),
    (RAND, number("heap_size", 1000), "are listed"),
    (RAND, put("dense", (1, 1000), -1), "list of tuples"),
    (RAND, put("place", slice(None), 0), "said to stand elsewhere"),
    (HEAP, number("heap_size", -1), "in the policy's heap"),
    (HEAP, put("heap", (0, 4), 5000, "item"), "item that there is not"),
    (HEAP, put("heap", (0, 4), np.nan, "prio"), "not a number"),
    (KEYS, put("heap", (0, 3), np.inf, "prio"), "not in order"),
    (HEAP, number("front", 1000), "entries of the policy's heap are its front"),
    (HEAP, number("bound", np.nan), "bound of the policy's heap"),
    (HEAP, number("bound", np.inf), "wrong side of its bound"),
    (HEAP, highest_in_front, "not in order"),
    (HEAP, put("place", (0, 1023), 3), "said to be in the policy's heap"),
    (KEYS, put("heap", (0, 4), 1023, "item"), "said to stand elsewhere"),
    (KEYS, put("place", (0, 1023), 3), "said to be in the policy's heap"),
    (KEYS, of_side("low", 1023), "lowest tuple of a key is not its oldest"),
    (TREES, of_side("low", 5000), "lowest tuple of a key is not there"),
    (TREES, put("more", slice(None), 5000, "child"), "linked wrongly"),
    (TREES, put("more", slice(None), np.nan, "rank"), "rank of a tuple"),
    (TREES, circle_of_tuples, "linked"),
    (LIFE, number("heap_size", 2), "in the tournament"),
    (LIFE, put("dense", (0, 1023), 7000), "none of the [0-9]+ leaves"),
    (LIFE, put("leaf", slice(None), 10**7, "slot"), "leaf of another"),
    (LIFE, put("leaf", slice(None), 10**7, "arrival"), "line is not that"),
    (LIFE, put("match", slice(None), 10**7, "winner"), "leaf of the tournament"),
    (LIFE, put("match", slice(None), 0, "doubt"), "in doubt"),
    (LIFE, put("match", slice(None), 1, "end"), "line is not that"),
    (LIFE, put("match", slice(None), 0.5, "weight"), "falls not as its weight says"),
    (GAINS, put("cumulated", slice(None), np.nan), "cumulative priority"),
    (GAINS, put("cumulated", slice(None), -np.inf), "below that of its queue"),
    (GAINS, put("probed", slice(None), 10**9), "instant that has not been"),
    (KEYS, of_side("weight", np.inf), "weight is not finite"),
    (KEYS, of_side("weight", 1e9), "more than the rows"),
    (WINDOW, put("seen", slice(None), 10**7, "slot"), "remembered of a key that there is not"),
    (WINDOW, number("seen_size", 10**7), "memory of arrivals holds"),
    (WINDOW, number("seen_head", -1), "memory of arrivals begins"),
    (WINDOW, put("keys", slice(None), 77, "held"), "held not as often"),
    (DECAYED, number("epoch", 2**50), "folded"),
    (DECAYED, number("t0", -(2**60)), "counts decay from"),
    (DECAYED, put("mass", slice(None), np.nan), "decayed count"),
    (SKETCH, put("sketch", 0, -5), "cell of the sketch"),
    (LEARNS, cut_array("model", 3), "model has the shape"),
    (LEARNS, number("observed", 2**52), "more rows were observed"),
    (LEARNS, number("looked_soon", 10**6), "looked at again"),
    (LEARNS, number("looked_later", -1), "looked at again"),
    (LEARNS, number("faded", 2**62), "faded too far"),
    (LEARNS, put("trail", slice(None), np.nan, "mass"), "decayed count"),
    (LEARNS, put("trail", slice(None), 2**61, "last"), "came after now"),
    (LEARNS, put("trail", slice(None), 3, "recent"), "counted wrongly"),
    (LEARNS, put("keys", slice(None), 0, "held"), "is not held"),
    (LEARNS, put("model", 0, np.nan), "what was learned is not finite"),
    (LEARNS, put("model", (0, learn.NEAR), 0.5), "keys lie on a ring that is 2.0 long"),
    (LEARNS, put("model", (0, learn.NEAR + neighbours.SPEED), 0.5), "keys move at a speed of 0.5"),
    (LEARNS, put("trail", slice(None), -1.0, "before"), "more rows came before a key than came"),
    (KEEP, number("observed", 1), "nobody asks for"),
    (KEEP, number("heap_size", 5), "keeps all"),
    (KEEP, number("started", 1), "never begun"),
]


@pytest.mark.small
@pytest.mark.parametrize(("chooser", "change", "wrong"), WRONG, ids=[f"{c}-{w}" for c, _, w in WRONG])
def test_what_is_wrong_is_named(chooser: Chooser, change: Callable[[Handle], None], wrong: str) -> None:
    case = case_of(chooser)
    engine = case.spec.resume(stopped(case)[0].snapshot())
    change(engine._state)
    with pytest.raises(sj.SnapshotError, match=wrong):
        audit.audit(engine._plan, engine._how, engine._state)


# ------------------------------------------------------------------------------------------------------- the envelope

HEAD = struct.Struct("<8sIQ")


def with_header(saved: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The snapshot with another header and the checksum that belongs to it."""
    mark, version, length = HEAD.unpack_from(saved)
    header = json.loads(saved[HEAD.size : HEAD.size + length])
    text = change(header)
    text = text if isinstance(text, bytes) else json.dumps(header).encode()
    body = HEAD.pack(mark, version, len(text)) + text + saved[HEAD.size + length : -32]
    return body + hashlib.blake2b(body, digest_size=32).digest()


def set_shape(name: str, shape: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda header: header["shapes"].__setitem__(name, shape)


def set_pending(rows: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda header: header["extra"].__setitem__("pending", rows)


HEADERS: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (set_shape("pool", [2**60]), "speaks of"),
    (set_shape("pool", [10**4000]), "speaks of"),
    (set_shape("pool", [2048]), "speaks of"),
    (set_shape("pool", [-1024]), "lengths belong"),
    (set_shape("pool", [1024.0]), "lengths belong"),
    (set_shape("pool", [2, 512]), "lengths belong"),
    (set_shape("expiry", [1, 2048]), "expiry has .* places|shape"),
    (set_shape("pool", None), "lengths belong"),
    (lambda header: header["shapes"].clear(), "lengths belong"),
    (lambda header: header.pop("shapes"), "lacks one of"),
    (lambda header: b"[]", "lacks one of"),
    (lambda header: b"\xff{", "cannot be read"),
    (lambda header: b"[" * 10**6, "cannot be read"),
    (lambda header: header["signature"].clear(), "another window"),
    (set_pending(None), "make no sense"),
    (set_pending([[1]]), "make no sense"),
    (set_pending([[2**70] * 9]), "make no sense"),
    (set_pending([[2] * 9]), "stream other than"),
    (set_pending([[1] * 6 + [6] + [1] * 2]), "a reason other than"),
]


@pytest.mark.small
@pytest.mark.parametrize(("change", "wrong"), HEADERS, ids=[f"{n}-{w}" for n, (_, w) in enumerate(HEADERS)])
def test_a_forged_header_is_refused(change: Callable[[dict[str, Any]], Any], wrong: str) -> None:
    case = case_of(Chooser("rand"))
    engine, _ = stopped(case)
    with pytest.raises(sj.SnapshotError, match=wrong):
        case.spec.resume(with_header(engine.snapshot(), change))


@pytest.mark.small
def test_an_honest_header_can_be_written_again() -> None:
    case = case_of(Chooser("rand"))
    engine, _ = stopped(case)
    saved = engine.snapshot()
    for form in (bytes, bytearray, memoryview):
        assert case.spec.resume(form(with_header(saved, lambda header: None))).snapshot() == saved
