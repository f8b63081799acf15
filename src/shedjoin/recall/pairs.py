"""Recall while a join runs: which share of the results, and of their importance, was delivered, with an interval.

What is known and what is not
    The delivered results D are counted by the engine. The missing results M are not known: nobody joined them. A pair is
    missing iff its older row had been shed before its newer row arrived (docs/semantics.md), so every missing pair
    belongs to one shed row, and M is the sum over shed rows x of m_x, the later rows that x would have met.

How M is estimated
    Each row is drawn, when it arrives, with a probability p_x and by a lot that depends on nothing but the seed and its
    number. A drawn row that is shed becomes a witness: it is kept until it would have expired, and every arriving row
    looks for witnesses of its key. Each pair so found counts 1 / p_x (Horvitz and Thompson): its expectation over the lots
    is one. Drawing at arrival, not at eviction, makes it possible to know the importance of a shed row.

    p_x is `scale` x (1/4 + sqrt(f / mean f)), at most 1, where f is how often the *other* stream brought the row's key of
    late (counts of hashed keys). Rows with many partners are rarer than their share in M; without this, one row
    in a thousand may stand for half of M, be missed by the sample, and the interval with it. The root is the best
    choice (Neyman's) where counting a partner is what costs. That f is a guess, even a bad one, biases nothing: p_x is
    fixed before the lot of x is looked at.

Bounded memory and work
    There is room for `witnesses` rows, drawn and waiting or shed. When it runs out, or more work is done than a few steps a row,
    `scale` is cut by a factor: drawn rows stay with that probability, decided by the same lot (so samples are nested), and
    carry their new p_x. Pairs found before count 1 / old p_x, pairs found later 1 / new p_x; each has expectation one, as each is
    counted with the probability that held when it was found. That `scale` depends on the sample does not
    matter: for a row x in the sample, it is the same whatever the lot of x was, as long as x stays in ("substitutability"; Ting,
    Adaptive threshold sampling). When there is room again, `scale` grows, for new rows only.

The interval
    Let z_x be what witness x counted. Lots are independent, so the variance of the sum is estimated by the sum of
    (1 - p_x) z_x^2. Where p_x fell on the way this is a little too large, never too small: with c1 pairs found under p1 and
    c2 under p2 < p1, the variance is (1 - p1) c1^2 / p1 + (1 - p2) c2^2 / p2 + 2 (1 - p1) c1 c2 / p1, and the expectation
    of what is summed has p2 (p1 - p2) c1^2 / p1^2 + 2 (p1 - p2) c1 c2 / p1 more. A sum of rare weighted events is skewed to
    the right, so limits are those of a weighted Poisson sum (Fay and Feuer 1997, by gamma quantiles), not of a normal.
    The weight of "one more event" in the upper limit is the mean of z_x weighted by z_x^2, and at least what one row without
    expectations stands for, so that a sample that found nothing does not claim certainty. Only half of the error that the
    level allows is used (`CAUTION`): measured over thousands of runs, limits at the level itself cover 95 to 96 of 100
    times at 95%, so of many series of 100 runs some would fall below 93; the limits used cover 98 times on average and are a
    seventh wider. Recall D / (D + M) falls with M: its limits are those of M put in.

Late rows
    Partners of a late row may have come and gone long before it, so no sample of bounded size can know them. Recall is over the
    pairs of rows that were not late; how many rows were late is reported beside it.
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.engine.codes import IMPORTANCE, LATE, ROW, TIME
from shedjoin.engine.output import Output, ShedLog
from shedjoin.engine.state import NEVER, NONE
from shedjoin.errors import InputError, SnapshotError, SpecError
from shedjoin.policies import KeepAll
from shedjoin.recall import sample as witness
from shedjoin.recall.checksum import SEAL, opened, sealed
from shedjoin.recall.estimate import LIVE_COLUMNS, RecallEstimate, check_level, combine
from shedjoin.spec import JoinSpec, check_seed
from shedjoin.window import TimeWindow

MAGIC = b"SHEDLIVE"
VERSION = 1
_HEAD = struct.Struct("<8sIQ")

#: Work saved up at the start, in steps for each place of the table: so that short streams are counted in full.
START = 64
#: When recent counts are this many times those of the first push, they are expressed anew.
LARGEST_FADE = 2.0**100


class LiveRecall:
    """Estimates recall while a join runs, from a bounded sample of the rows.

    Parameters
    ----------
    spec
        The join that is watched.
    seed
        For the sample. Shards of one join need different seeds, or their errors add up instead of evening out.
    witnesses
        The most rows that are remembered; about 140 bytes each.
    level
        Of the confidence limits.
    recent
        The half-life of the recent estimate, in pushes that bring rows.

    Examples
    --------
    >>> import shedjoin as sj
    >>> spec = sj.JoinSpec(window=sj.TimeWindow(3), budget=sj.Budget(tuples=2), policy=sj.Simp())
    >>> engine, live = spec.build(), LiveRecall(spec)
    >>> batch = sj.Batch.of({"key": [1, 1, 1, 3, 2]}, {"key": [2, 3, 1, 1, 3]})
    >>> live.follow(batch, engine.push(batch))
    >>> now = live.estimate()
    >>> now.results, now.missing, round(now.recall, 3), now.low == now.high
    (4, 3.0, 0.571, True)
    """

    def __init__(
        self, spec: JoinSpec, seed: int = 0, witnesses: int = 4096, level: float = 0.95, recent: float = 8.0
    ) -> None:
        if not isinstance(spec, JoinSpec):
            raise SpecError(f"spec must be a JoinSpec, not {type(spec).__name__}")
        check_seed(seed)
        if isinstance(witnesses, bool) or not isinstance(witnesses, int) or not 16 <= witnesses <= 2**24:
            raise SpecError(f"witnesses must be a whole number from 16 to 2**24, not {witnesses!r}")
        check_level(level)
        if isinstance(recent, bool) or not isinstance(recent, int | float) or not 0.1 <= recent < 1e9:
            raise SpecError(f"recent must be a number of pushes from 0.1 to 1e9, not {recent!r}")
        self._signature = _signature(spec, seed, witnesses)
        self._level, self._recent = float(level), float(recent)
        self._nothing_goes = isinstance(spec.policy, KeepAll)
        self._state = _state(spec, seed, witnesses)
        self._sample = _sample(witnesses)
        room = int(self._state["block"][0]) + 1
        self._notes = witness.Notes(*(np.zeros(room, dtype=np.int64) for _ in witness.Notes._fields))
        self._results = self._late = 0
        self._lanes = np.zeros(4)  # summed importance
        self._faded = np.zeros(2)  # recent results and importance, in the measure of the state's `fade`
        self._new = np.zeros(2)  # those of the push that is under way

    def follow(self, batch: Batch, out: Output) -> None:
        """Take note of a push: call it after every `engine.push(batch)` with what came out.

        What a changed budget sheds is told by ``follow(Batch.of(), engine.set_budget(...))``.
        """
        if not isinstance(out, Output):
            raise InputError(f"out must be the Output of a push, not {type(out).__name__}")
        if out.importance.size != out.stats["results"]:
            raise InputError(
                f"out has {out.importance.size} of {out.stats['results']} results: "
                "recall needs an engine that gives all of them out"
            )
        self.deliver(out.importance)
        self.watch(batch, out.shed, out.stats["late"])

    def deliver(self, importance: NDArray[np.float64]) -> None:
        """Count results by their importance. Where results leave in pieces: one call a piece, then `watch`."""
        before = self._lanes.sum()
        witness.add_up(self._lanes, self._results, importance)
        self._results += int(importance.size)
        self._new += (importance.size, self._lanes.sum() - before)

    def watch(self, batch: Batch, shed: ShedLog, late: int) -> None:
        """Take note of the rows of a push, of what was shed, and how many came late; `deliver` has counted its results."""
        if len(batch):
            self._state["fade"] *= 2.0 ** (1.0 / self._recent)
            if self._state["fade"][0] > LARGEST_FADE:
                self._faded /= LARGEST_FADE
                witness.rescale(self._state, self._sample.table, 1.0 / LARGEST_FADE)
        self._faded += self._new * self._state["fade"][0]
        self._new[:] = 0.0
        log = shed._pieces.whole()  # the copy that `records()` makes would cost more than all that follows
        self._late += late
        if self._nothing_goes:
            return
        skipped = self._skipped(batch, log[log["why"] == LATE]) if late else batch.null
        push = witness.Push(
            batch.stream, batch.key, skipped, batch.ts, batch.importance, instants=self._instants(batch)
        )
        done = witness.follow(self._state, self._sample, self._notes, push, log)
        if done != log.size:
            raise InputError(
                f"the shed log has a record of row {log['seq'][done]} of stream {log['stream'][done]} that does not fit "
                "the rows that were followed: follow every push of one engine, from its first, once and in order"
            )

    def _skipped(self, batch: Batch, late: NDArray[np.void]) -> NDArray[np.bool_]:
        """Rows that join nothing: those with null keys and those that came late."""
        skipped = batch.null.copy()
        for stream in (0, 1):
            places = np.flatnonzero(batch.stream == stream)
            skipped[places[late["seq"][late["stream"] == stream] - self._state["arrived"][0, stream]]] = True
        return skipped

    def _instants(self, batch: Batch) -> NDArray[np.int64]:
        """For row windows: what has arrived of each stream by the end of each row's instant."""
        if not (self._state["kind"] == ROW).any() or not len(batch):
            return np.empty((0, 2), dtype=np.int64)
        arrived = self._state["arrived"] + np.cumsum(batch.stream[:, None] == np.arange(2), axis=0)
        last = np.flatnonzero(np.diff(batch.ts, append=batch.ts[-1] + 1))
        whole: NDArray[np.int64] = arrived[last[np.searchsorted(last, np.arange(len(batch)))]]
        return whole

    def estimate(self, *, recent: bool = False) -> RecallEstimate:
        """Recall since the start; or of late, each push counting less the longer ago it was."""
        return combine([self.sums()], self._level, recent=recent)

    def sums(self) -> dict[str, float]:
        """What the estimate is made of, under the names of `LIVE_COLUMNS`. Sums of shards can be added."""
        found = self._state["sums"][0].copy()
        witness.tally(self._state, self._sample.table, found)
        state = self._state[0]
        fade = float(state["fade"])
        unseen = 1.0 / min(1.0, float(state["scale"]) * witness.FLOOR) - 1.0
        found[2:] /= np.array([fade, fade**2, fade**3])
        faded = self._faded / fade
        numbers = [
            *(float(self._results), *found[0]),
            *(float(self._lanes.sum()), *found[1]),
            *(faded[0], *found[2]),
            *(faded[1], *found[3]),
            *(float(state["shed"]), state["unit"] + state["shed_now"] * unseen, float(self._late)),
        ]
        return dict(zip(LIVE_COLUMNS, map(float, numbers), strict=True))

    @property
    def remembered(self) -> int:
        """Rows in the sample, at most `witnesses`."""
        return int(self._state["used"][0])

    def to_bytes(self) -> bytes:
        """All that is known between two pushes, with a version and a checksum."""
        used = self.remembered
        numbers = {"signature": self._signature, "used": used, "results": self._results, "late": self._late}
        header = json.dumps(numbers).encode()
        parts = [_HEAD.pack(MAGIC, VERSION, len(header)), header]
        parts += [array.tobytes() for array in (self._state, self._lanes, self._faded, self._new)]
        parts += [self._sample.table[:used].tobytes(), self._sample.counts.tobytes()]
        body = b"".join(parts)
        return sealed(body)

    @classmethod
    def from_bytes(
        cls,
        spec: JoinSpec,
        data: bytes,
        seed: int = 0,
        witnesses: int = 4096,
        level: float = 0.95,
        recent: float = 8.0,
    ) -> LiveRecall:
        """Go on from `to_bytes()`. The budget, the level and the half-life may be others than before."""
        live = cls(spec, seed, witnesses, level, recent)
        live._load(data)
        return live

    def _load(self, data: bytes) -> None:
        header, body = _checked(data)
        for name, mine in self._signature.items():
            theirs = header["signature"].get(name)
            if theirs != mine:
                raise SnapshotError(
                    f"the recall estimate was saved with another {name}: {theirs!r}, here it is {mine!r}. "
                    "Only budget, level and half-life may change."
                )
        used = header["used"]
        table, counts = self._sample.table[:used], self._sample.counts
        arrays = [self._state, self._lanes, self._faded, self._new, table, counts]
        if sum(array.nbytes for array in arrays) != len(body):
            raise SnapshotError(f"the saved recall estimate is cut short or too long: it has {len(body)} bytes")
        start = 0
        for array in arrays:
            array[...] = np.frombuffer(body, array.dtype, array.size, start).reshape(array.shape)
            start += array.nbytes
        self._results, self._late = header["results"], header["late"]
        witness.link_up(self._state, self._sample)


def _signature(spec: JoinSpec, seed: int, witnesses: int) -> dict[str, Any]:
    """What must be the same for a saved estimate to be gone on with."""
    return {
        "window": [[window.kind, window.size] for window in spec.windows],
        "importance": spec.importance,
        "lateness": spec.lateness,
        "max_skew": spec.max_skew,
        "seed": seed,
        "witnesses": witnesses,
    }


def _state(spec: JoinSpec, seed: int, witnesses: int) -> NDArray[Any]:
    state = np.zeros(1, witness.STATE_RECORD)
    for stream, window in enumerate(spec.windows):
        state["kind"][0, stream] = TIME if isinstance(window, TimeWindow) else ROW
        state["size"][0, stream] = window.size
    state["lateness"] = spec.lateness
    state["max_skew"] = NONE if spec.max_skew is None else spec.max_skew
    state["output_importance"] = IMPORTANCE[spec.importance]
    # Engines draw by the same seeds: the salt keeps the sample apart from what RAND evicts.
    digest = hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=8, person=b"witness").digest()
    state["seed"] = int.from_bytes(digest, "little")
    state["clock"] = NEVER
    state["scale"] = 1.0 / witness.FLOOR
    state["fade"] = 1.0
    state["block"] = min(witness.LONGEST_BLOCK, 1 << ((witnesses // 8).bit_length() - 1))
    state["period"] = 8 * witnesses
    state["bank"] = state["savings"] = START * witnesses
    return state


def _sample(witnesses: int) -> witness.Sample:
    cells = 1 << (2 * witnesses - 1).bit_length()
    return witness.Sample(
        table=np.zeros(witnesses, witness.WITNESS_RECORD),
        counts=np.zeros(2 * cells, dtype=np.uint16),
        tags=np.zeros(2 * cells, dtype=np.uint16),
        heads=np.full(2 * cells, NONE, dtype=np.int32),
        rows=np.full(2 * cells, NONE, dtype=np.int32),
        sieve=np.zeros(max(1, cells // 16), dtype=np.uint64),
    )


def _checked(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the arrays of a saved estimate."""
    if not isinstance(data, bytes | bytearray | memoryview) or bytes(data[:8]) != MAGIC:
        raise SnapshotError("these are not the bytes of a recall estimate (they do not begin with its mark)")
    data = bytes(data)
    if len(data) < _HEAD.size + SEAL:
        raise SnapshotError(f"the saved recall estimate is cut short: {len(data)} bytes are less than its frame alone")
    _, version, length = _HEAD.unpack_from(data)
    if version != VERSION:
        raise SnapshotError(f"the recall estimate has format {version}, this shedjoin reads format {VERSION}")
    body = opened(data)
    return json.loads(body[_HEAD.size : _HEAD.size + length]), body[_HEAD.size + length :]
