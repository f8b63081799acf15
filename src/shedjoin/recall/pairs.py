"""Live recall of a join of two streams: the share of results, and of their importance, delivered so far, with an interval.

What is known
    The engine counts the delivered results D. The missing results M are not known, because they were never joined. A pair is
    missing iff its older row was shed before its newer row arrived (docs/semantics.md). So every missing pair belongs to one
    shed row, and M is the sum over shed rows x of m_x, the number of later rows that x would have joined.

How M is estimated
    Each arriving row enters the sample with a probability p_x. A random draw decides, which depends on the seed and the row's
    number only. A sampled row that is shed stays in the sample until it would have expired, and every arriving row looks for
    shed rows of its key there. Each pair that is found counts 1 / p_x (Horvitz and Thompson), so its expectation over the
    draws is one. Rows are sampled at arrival, not at eviction, because the importance of a shed row must be known.

    p_x is `scale` x (1/4 + sqrt(f / mean f)), at most 1. f is the recent number of rows with the row's key on the *other*
    stream, from counts of hashed keys. Rows with many partners are rare and have a large share of M: without f, one row in a
    thousand may account for half of M and be absent from the sample, so that the interval is wrong. The square root is
    the best choice (Neyman allocation) if the cost is that of counting partners. An inaccurate f does not bias the estimate,
    because p_x is fixed before the draw of x is used.

Bounded memory and work
    The sample has at most `rows` rows, stored or shed. When it is full, or the work exceeds a few steps a row, `scale` is
    multiplied by a factor below 1. Each sampled row stays with that probability, decided by the same draw (so samples are
    nested), and has its new p_x. Pairs found before count 1 / old p_x, and pairs found later 1 / new p_x. Each has
    expectation one, because it is counted with the probability that held when it was found. `scale` depends on the sample,
    but that does no harm: for a row x in the sample it is the same whatever the draw of x was, as long as x stays in
    ("substitutability"; Ting, Adaptive threshold sampling). When there is room again, `scale` grows, for new rows only.

The interval
    Let z_x be the count of sampled row x. Draws are independent, so the variance of the sum is estimated by the sum of
    (1 - p_x) z_x^2. If p_x fell in between, this is slightly too large, never too small: with c1 pairs found under p1 and c2
    under p2 < p1, the variance is (1 - p1) c1^2 / p1 + (1 - p2) c2^2 / p2 + 2 (1 - p1) c1 c2 / p1. The expectation of the
    estimate is larger by p2 (p1 - p2) c1^2 / p1^2 + 2 (p1 - p2) c1 c2 / p1. A sum of rare weighted events is skewed to the
    right, so the limits are those of a weighted Poisson sum (Fay and Feuer 1997, by gamma quantiles), not of a normal.
    The upper limit adds "one more event". Its weight is the mean of z_x weighted by z_x^2, and at least 1 / p - 1 of a row
    with f = 0, so that a sample without any missing pair does not claim certainty. Only half of the error that the level
    allows is used (`CAUTION`). Over thousands of runs, limits at the level itself cover 95 to 96 of 100 times at 95%, so
    some series of 100 runs would fall below 93. The limits used cover 98 times on average and are a seventh wider. Recall
    D / (D + M) falls with M, so its limits follow from those of M.

Late rows
    Partners of a late row may have expired long before it, so no sample of bounded size has them all. Recall is over the pairs
    that the join finds without a budget: those of late rows with rows that had expired are not among them. The number of late
    rows is reported separately.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.engine.codes import IMPORTANCE, LATE, ROW, TIME
from shedjoin.engine.output import Output, ShedLog
from shedjoin.engine.records import NEVER, NONE
from shedjoin.errors import InputError
from shedjoin.policies import KeepAll
from shedjoin.recall.live import LARGEST_WEIGHT, LiveRecall
from shedjoin.recall.sample.counts import add_in_lanes, add_sample, rescale_recent
from shedjoin.recall.sample.loop import follow_push, rebuild
from shedjoin.recall.sample.state import FLOOR, LONGEST_BLOCK, ROW_RECORD, STATE_RECORD, Push, Sample, Selected
from shedjoin.spec import JoinSpec, check_pair, check_unconditional, check_whole_windows
from shedjoin.window import TimeWindow

#: Work allowed in advance, in steps for each row of the sample, so that short streams are counted in full.
START_CREDIT = 64
_NONE = np.empty(0, np.int64)


class PairRecall(LiveRecall):
    """Estimates the recall of a join of two streams on a key. A sampled row takes about 140 bytes."""

    def _check(self, spec: JoinSpec) -> None:
        check_pair(
            "PairRecall", replace(spec, policy=None)
        )  # `Met` stores each tuple by itself, in a join that is the same
        check_whole_windows("PairRecall", spec)
        check_unconditional("PairRecall", spec)

    def _start(self, spec: JoinSpec, seed: int, part: tuple[int, int]) -> None:
        self._never_sheds = isinstance(spec.policy, KeepAll)
        self._state = _state(spec, seed, self._most)
        self._sample = _sample(self._most)
        most = int(self._state["block"][0]) + 1
        self._selected = Selected(*(np.zeros(most, dtype=np.int64) for _ in Selected._fields))
        self._results = self._late = self._rows = 0
        self._lanes = np.zeros(4)  # delivered importance
        self._recent = np.zeros(2)  # delivered results and importance, weighted by `recent_weight`
        self._push = np.zeros(2)  # delivered results and importance of the present push

    def deliver(self, out: Output) -> None:
        """Count the results of one piece of output."""
        importance = out.importance
        before = self._lanes.sum()
        add_in_lanes(self._lanes, self._results, importance)
        self._results += int(importance.size)
        self._push += (importance.size, self._lanes.sum() - before)

    def watch(self, batch: Batch, shed: ShedLog, late: int) -> None:
        """Process the rows of a push, its shed log and its number of late rows, after `deliver` has counted its results."""
        if len(batch):
            self._state["recent_weight"] *= 2.0 ** (1.0 / self._half_life)
            if self._state["recent_weight"][0] > LARGEST_WEIGHT:
                self._recent /= LARGEST_WEIGHT
                rescale_recent(self._state, self._sample.table, 1.0 / LARGEST_WEIGHT)
            self._recent_weight = float(self._state["recent_weight"][0])
        self._recent += self._push * self._recent_weight
        self._push[:] = 0.0
        log = shed._pieces.whole()  # `records()` makes a copy, which would cost more than all that follows
        self._late += late
        if self._never_sheds:
            return
        push = Push(
            batch.stream,
            batch.key,
            batch.null,
            batch.ts,
            batch.importance,
            expired=self._expired(batch, log[log["why"] == LATE]) if late else _NONE,
            instants=self._instants(batch),
            seq=_NONE if batch.numbers is None else batch.numbers.seq,
            logged_at=self._logged_at(batch, log) if self._counts_elsewhere else _NONE,
        )
        done = follow_push(self._state, self._sample, self._selected, push, log, self._rows)
        self._rows += len(batch)
        if done != log.size:
            raise InputError(
                f"the shed log has a record of row {log['seq'][done]} of stream {log['stream'][done]} that does not fit "
                "the rows that were followed: follow every push of one engine, from its first, once and in order"
            )

    def _expired(self, batch: Batch, late: NDArray[np.void]) -> NDArray[np.int64]:
        """Of late rows: up to which time rows of the other stream had expired."""
        expired = np.full(len(batch), NEVER)
        for stream in (0, 1):
            places = np.flatnonzero(batch.stream == stream)
            records = late[late["stream"] == stream]
            if batch.numbers is None:
                at = records["seq"] - self._state["arrived"][0, stream]
            else:
                at = np.searchsorted(batch.numbers.seq[places], records["seq"])
            expired[places[at]] = records["expired"][:, 1 - stream]
        return expired

    def _logged_at(self, batch: Batch, log: NDArray[np.void]) -> NDArray[np.int64]:
        """How many rows had come here when each record was written, which says how many had come anywhere."""
        if batch.numbers is None:
            return np.full(log.size, self._rows)
        anywhere = batch.numbers.arrived.sum(axis=1)
        come: NDArray[np.int64] = np.searchsorted(anywhere, log["seen"].sum(axis=1), side="right")
        return self._rows + come

    def _instants(self, batch: Batch) -> NDArray[np.int64]:
        """For row windows: how many rows of each stream have arrived by the end of each row's instant."""
        if batch.numbers is not None:
            return batch.numbers.arrived
        if not (self._state["window_kind"] == ROW).any() or not len(batch):
            return np.empty((0, 2), dtype=np.int64)
        arrived = self._state["arrived"] + np.cumsum(batch.stream[:, None] == np.arange(2), axis=0)
        last = np.flatnonzero(np.diff(batch.ts, append=batch.ts[-1] + 1))
        whole: NDArray[np.int64] = arrived[last[np.searchsorted(last, np.arange(len(batch)))]]
        return whole

    def _sums(self) -> tuple[NDArray[np.float64], list[float]]:
        found = self._state["sums"][0].copy()
        add_sample(self._state, self._sample.table, found)
        state = self._state[0]
        unit = 1.0 / min(1.0, float(state["scale"]) * FLOOR) - 1.0
        delivered = [self._results, self._lanes.sum(), *self._recent]
        return np.column_stack([delivered, found]), [
            state["shed"],
            state["unit"] + state["block_shed"] * unit,
            self._late,
        ]

    @property
    def remembered(self) -> int:
        """The number of rows in the sample."""
        return int(self._state["used"][0])

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {"state": self._state, "lanes": self._lanes, "recent": self._recent, "push": self._push}
        return {**arrays, "table": self._sample.table[: self.remembered], "key_counts": self._sample.key_counts}

    def _numbers(self) -> list[Any]:
        return [self._results, self._late, self._rows]

    def _restore(self, arrays: Mapping[str, NDArray[Any]], numbers: list[Any], snapshot: bytes) -> None:
        self._state[...] = arrays["state"]
        for name, array in self._arrays().items():
            array[...] = arrays[name]
        self._results, self._late, self._rows = numbers
        self._recent_weight = float(self._state["recent_weight"][0])
        rebuild(self._state, self._sample)


def _state(spec: JoinSpec, seed: int, rows: int) -> NDArray[Any]:
    state = np.zeros(1, STATE_RECORD)
    for stream, window in enumerate(spec.windows):
        state["window_kind"][0, stream] = TIME if isinstance(window, TimeWindow) else ROW
        state["window_size"][0, stream] = window.size
    state["lateness"] = spec.lateness
    state["max_skew"] = NONE if spec.max_skew is None else spec.max_skew
    state["output_importance"] = IMPORTANCE[spec.importance]
    # Engines draw with the same seeds: the salt makes the sample independent of the rows that RAND evicts.
    digest = hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=8, person=b"witness").digest()
    state["seed"] = int.from_bytes(digest, "little")
    state["clock"] = NEVER
    state["scale"] = 1.0 / FLOOR
    state["recent_weight"] = 1.0
    state["block"] = min(LONGEST_BLOCK, 1 << ((rows // 8).bit_length() - 1))
    state["period"] = 8 * rows
    state["credit"] = state["credit_limit"] = START_CREDIT * rows
    return state


def _sample(rows: int) -> Sample:
    slots = 1 << (2 * rows - 1).bit_length()
    return Sample(
        table=np.zeros(rows, ROW_RECORD),
        key_counts=np.zeros(2 * slots, dtype=np.uint16),
        tags=np.zeros(2 * slots, dtype=np.uint16),
        shed_heads=np.full(2 * slots, NONE, dtype=np.int32),
        stored_heads=np.full(2 * slots, NONE, dtype=np.int32),
        bitmap=np.zeros(max(1, slots // 16), dtype=np.uint64),
    )
