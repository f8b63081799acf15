"""What a snapshot says is checked before it is run: honest ones pass, forged ones are refused or do no harm."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from forging import JOINS, Forged
from shedjoin.engine import snapshot
from shedjoin.engine.codes import WHY
from shedjoin.engine.contents import BY_STREAM, NUMBERS
from shedjoin.engine.stages import learn, neighbours
from strategies import WINDOWS, Case, Chooser, Combination, cases, for_all, go_on, run_engine, share

BY_NAME = {join.name: join for join in JOINS}
_NAMES = [name for name in NUMBERS if name != "random"]

# ------------------------------------------------------------------------------------------------------------- honest


@pytest.mark.small
@pytest.mark.parametrize("name", BY_NAME)
def test_an_engine_goes_on_from_any_point(name: str) -> None:
    join = BY_NAME[name]
    engine = join.spec.build(seed=join.seed)
    for number in range(len(join.pushes)):
        saved = engine.snapshot()
        again = join.spec.resume(saved)
        assert again.snapshot() == saved
        first, second = (one.push(join.batch(one, number)) for one in (engine, again))
        assert np.array_equal(np.sort(first.rows, axis=0), np.sort(second.rows, axis=0))
        assert np.array_equal(first.shed.records(), second.shed.records())
        assert first.stats.items() - second.stats.items() <= {("expirations", first.stats["expirations"])}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_snapshot_of_arrays_that_have_grown(name: str) -> None:
    join = BY_NAME[name]
    if isinstance(join.spec.policy, sj.Replay):
        assert join.spec.policy.schedule()  # its rows are counted: there are no more to grow by
        return
    engine = join.spec.with_budget(None if join.spec.budget is None else sj.Budget(tuples=1500)).build(seed=1)
    rows = [dict(join.pushes[0][0], ts=place // 9, stream=place % len(join.spec.names)) for place in range(6000)]
    for place, row in enumerate(rows):
        row.update({name: place % 2900 for name in ("key", "x", "y") if name in row})
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    engine.push(engine.rows(columns))
    if join.spec.windows[0].size > 1500 and join.spec.budget is None:
        assert engine._state.arrays["pool"].size > 1024
    spec = join.spec.with_budget(engine.budget)
    again = spec.resume(engine.snapshot())
    more = {**columns, "ts": [ts + 700 for ts in columns["ts"]]}
    first, second = (one.push(one.rows(more)) for one in (engine, again))
    assert np.array_equal(first.shed.records(), second.shed.records())
    assert engine.residents == again.residents


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


# ------------------------------------------------------------------------------------------------------------- forged


@pytest.mark.small
def test_a_forged_snapshot_is_refused_or_does_no_harm() -> None:
    """In a process of its own: see `forging`."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "forging.py", str(0.05 * share(4))],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=600,
    )
    said = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, (said, done.returncode, done.stderr[-1000:])
    refused, tried = (int(number) for number in said[0].removesuffix(" refused").split(" of "))
    # The rest are numbers that may be anything: totals, priorities, times within the window.
    assert refused > tried / 4


Change = Callable[[dict[str, Any]], None]


def put(name: str, at: Any, value: Any, part: str | None = None) -> Change:
    def change(columns: dict[str, Any]) -> None:
        (columns[name] if part is None else columns[name][part])[at] = value

    return change


def number(name: str, value: int) -> Change:
    return put("numbers", _NAMES.index(name), value)


def by_stream(name: str, value: int) -> Change:
    return put("by stream", (BY_STREAM.index(name), 0), value)


LAZY, KEYED = "three streams, lazy", "three streams, key"
QUEUE, DUAL = "three streams, queue", "three streams, dual"
WAITING_SETS = "two streams, integrated queue"


def _named(start: str) -> str:
    return next(name for name in BY_NAME if name.startswith(start))


WRONG: list[tuple[str, Change, str]] = [
    ("rand", put("tuple stream", 0, 2), "of a stream other than 0 to 1"),
    ("rand", put("tuple arrival", 0, 10**6), "has not arrived"),
    ("rand", put("tuple arrival", 1, 0), "not in the order of their arrival"),
    ("rand", put("tuple bytes", 0, 0), "has no bytes"),
    ("rand", put("tuple seq", 0, -1), "of a row that has not arrived"),
    ("rand", put("tuple ts", 0, 2**60), "after its stream's clock"),
    ("rand", put("tuple importance", 0, float("nan")), "not finite and above 0"),
    ("rand", put("tuple key", (0, 0), 999_999), "a key that is not known"),
    ("rand", put("tuple place", 0, 77), "lacks one or has one twice"),
    ("rand", put("value key", slice(0, 2), 5), "a value is there twice"),
    ("rand", put("value held", 0, -1), "less than never"),
    ("rand", put("value weight", (0, 0), -1.0), "not finite and at least 0"),
    ("rand", put("random", 0, 0), "the random state is 0"),
    ("rand", number("rows", 1), "counted in two ways"),
    ("rand", number("tick", -1), "tick is -1"),
    ("rand", number("lift_tick", -1), "lifted from instant -1"),
    ("rand", by_stream("clock", 2**60), "time out of range"),
    ("rand", by_stream("arrived", 2**60), "more rows have arrived"),
    ("simp", put("tuple prio", 0, float("nan")), "a priority is not a number"),
    ("prob", lambda columns: columns.update({"sketch": columns["sketch"] - 1}), "counts less than nothing"),
    ("prospect", put("model", (0, learn.COEFFICIENT), float("inf")), "what was learned is not finite"),
    ("prospect", put("model", (0, learn.NEAR + neighbours.SPEED), 1e9), "keys move at a speed of"),
    ("prospect", put("model", (0, learn.NEAR + neighbours.TURNS), 0.0), "a ring without a length"),
    ("prospect", by_stream("looked_later", 10**6), "more arrivals were looked at again"),
    ("prospect", put("value trail", (0, 0), 77, "recent"), "recent rows of a key are counted wrongly"),
    (LAZY, lambda columns: columns.update(pending=columns["pending"] + 10**6), "a tuple waits that is not stored"),
    (LAZY, number("first_mark", -1), "instants wait from number -1"),
    (KEYED, put("value part", 0, 3), "attributes that there are not"),
    (KEYED, put("seen value 0", 0, 10**6), "of a value that is not known"),
    (KEYED, put("value weight", (0, 0), 1000.0), "not the number of arrivals"),
    (QUEUE, put("waiting stream", 0, 3), "a row that waits is of a stream other than 0 to 2"),
    (QUEUE, put("waiting arrival", 1, 0), "rows do not wait in order of arrival"),
    (QUEUE, put("waiting seq", 0, 10**6), "a row waits that has not arrived"),
    (QUEUE, put("waiting place", 0, 77), "the list of rows in line lacks one"),
    (QUEUE, put("waiting ts", 0, 2**60), "a row waits with a time out of range"),
    (QUEUE, put("waiting instant", 0, -1), "of an instant that is not known"),
    ("three streams, semantic queue", put("waiting inside", 0, 1), "there is no aux-window"),
    (QUEUE, put("instants", (0, 0), 10**6), "an instant began with rows that have not arrived"),
    (QUEUE, put("fresh item", 0, 10**6), "a tuple is new that is not stored"),
    (QUEUE, put("fresh value", (0, 0), 10**6), "a new tuple has a value that is not known"),
    (QUEUE, put("waiting floats", 0, float("nan")), "what the CPU has done is not a number"),
    (WAITING_SETS, put("waiting chance", 0, -1.0), "a chance is below 0"),
    (WAITING_SETS, put("tuple items", -1, 10**6), "a set has less than none or more than"),
    (WAITING_SETS, put("waiting null", 0, 1), "'tuple items' is int64 of shape"),
    ("two streams, selective queue", put("waiting kind", 0, 2), "a row has a type that there is not"),
    (DUAL, put("waiting expected", 0, float("inf")), "a row expects partners that cannot be counted"),
    (DUAL, put("let in value 0", 0, 10**6), "a histogram counts a value that is not known"),
    (DUAL, put("let in size 0", 0, 7), "a histogram counts more or fewer values than its rows have"),
    (DUAL, put("waiting floats", 2, 1.5), "rear_share is 1.5"),
]


@pytest.mark.small
@pytest.mark.parametrize(("name", "change", "wrong"), WRONG, ids=[wrong for _, _, wrong in WRONG])
def test_what_is_wrong_is_named(name: str, change: Change, wrong: str) -> None:
    join = BY_NAME[_named(name)]
    saved = snapshot.unpack(join.stopped().snapshot())
    columns = {name: column.copy() for name, column in saved.columns.items()}
    change(columns)
    with pytest.raises(sj.SnapshotError, match=wrong):
        join.spec.resume(snapshot.pack(columns, saved.signature, saved.extra))


@pytest.mark.small
def test_columns_must_be_those_of_the_join() -> None:
    join = BY_NAME[_named("rand")]
    saved = snapshot.unpack(join.stopped().snapshot())
    for columns in (
        {name: column for name, column in saved.columns.items() if name != "tuple ts"},
        {**saved.columns, "more": np.zeros(3)},
        {**saved.columns, "tuple ts": saved.columns["tuple ts"][:-1]},
        {**saved.columns, "tuple ts": saved.columns["tuple ts"].astype(np.float64)},
    ):
        with pytest.raises(sj.SnapshotError, match="contradicts itself"):
            join.spec.resume(snapshot.pack(columns, saved.signature, saved.extra))


HEAD = struct.Struct("<8sIQ")


def with_header(saved: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The snapshot with another header and the checksum that belongs to it."""
    mark, version, length = HEAD.unpack_from(saved)
    header = json.loads(saved[HEAD.size : HEAD.size + length])
    text = change(header)
    text = text if isinstance(text, bytes) else json.dumps(header).encode()
    body = HEAD.pack(mark, version, len(text)) + text + saved[HEAD.size + length : -32]
    return body + hashlib.blake2b(body, digest_size=32).digest()


def set_shape(entry: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda header: header["shapes"].__setitem__("tuple ts", entry)


def set_pending(rows: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda header: header["extra"].__setitem__("pending", rows)


HEADERS: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (set_shape(["<i8", [2**60]]), "does not fit"),
    (set_shape(["<i8", [10**4000]]), "does not fit"),
    (set_shape(["<i8", [-1024]]), "makes no sense"),
    (set_shape(["<i8", [4.0]]), "makes no sense"),
    (set_shape(["|O", [4]]), "makes no sense"),
    (set_shape(None), "makes no sense"),
    (lambda header: header["shapes"].clear(), "more than its header speaks of"),
    (lambda header: header.pop("shapes"), "lacks one of"),
    (lambda header: b"[]", "lacks one of"),
    (lambda header: b"\xff{", "cannot be read"),
    (lambda header: b"[" * 10**6, "cannot be read"),
    (lambda header: header["signature"].clear(), "another streams"),
    (lambda header: header["signature"].pop("policy"), "says of its order"),
    (lambda header: header["signature"].__setitem__("policy", [99, 1, 0, 0, 0, 0, 1]), "says of its order"),
    (lambda header: header["signature"].__setitem__("policy", [99, 1, 0, 0, 0, 0, 1, 0]), "an organisation or a way"),
    (lambda header: header["signature"].__setitem__("estimator", [0, 1.0, 2**40, 1]), "an estimator that there is not"),
    (lambda header: header["extra"].pop("orders"), "header makes no sense"),
    (set_pending(None), "make no sense"),
    (set_pending([[1]]), "make no sense"),
    (set_pending([[2**70] * 7 + [[1, 1]]]), "make no sense"),
    (set_pending([[2] * 7 + [[1, 1], [1, 1]]]), "stream other than"),
    (set_pending([[1] * 6 + [len(WHY)] + [[1, 1], [1, 1]]]), "a reason other than"),
]


@pytest.mark.small
@pytest.mark.parametrize(("change", "wrong"), HEADERS, ids=[f"{n}-{w}" for n, (_, w) in enumerate(HEADERS)])
def test_a_forged_header_is_refused(change: Callable[[dict[str, Any]], Any], wrong: str) -> None:
    join: Forged = BY_NAME[_named("rand")]
    with pytest.raises((sj.SnapshotError, sj.SpecError), match=wrong):
        join.spec.resume(with_header(join.stopped().snapshot(), change))


@pytest.mark.small
def test_an_honest_header_can_be_written_again() -> None:
    join = BY_NAME[_named("rand")]
    saved = join.stopped().snapshot()
    for form in (bytes, bytearray, memoryview):
        assert join.spec.resume(form(with_header(saved, lambda header: None))).snapshot() == saved


@pytest.mark.small
def test_snapshots_of_the_version_before_are_refused() -> None:
    join = BY_NAME[_named("rand")]
    saved = bytearray(join.stopped().snapshot())
    saved[8] = 4
    with pytest.raises(sj.SnapshotError, match="has format 4, this shedjoin reads format 11"):
        join.spec.resume(bytes(saved))
