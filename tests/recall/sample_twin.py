"""A slow and obvious twin of the kernels of the recall sample."""

from __future__ import annotations

import math
from typing import Any

from recall_runs import OUTPUT

import shedjoin as sj
from shedjoin.engine.codes import LATE
from shedjoin.recall import pairs
from shedjoin.recall.sample import draws, state


class Twin:
    """The same sample, row by row, with nothing but lists. `shedjoin.recall.pairs` says what it does and why."""

    def __init__(self, spec: sj.JoinSpec, seed: int, rows: int) -> None:
        self.spec, self.most = spec, rows
        fresh = pairs._state(spec, seed, rows)
        self.seed, self.block, self.period = int(fresh["seed"][0]), int(fresh["block"][0]), int(fresh["period"][0])
        self.credit = self.credit_limit = float(fresh["credit"][0])
        self.slots = 1 << (2 * rows - 1).bit_length()
        self.scale, self.inverse_mean, self.partners, self.counted = 1 / state.FLOOR, 0.0, 0, 0
        self.count: dict[tuple[int, int], int] = {}
        self.arrived, self.clock = [0, 0], [-math.inf, -math.inf]
        self.sample: list[dict[str, Any]] = []
        self.removed: list[dict[str, Any]] = []
        self.period_rows = self.period_work = 0
        self.expired: list[float] = []

    def draw(self, stream: int, seq: int) -> float:
        wide = 2**64
        x = (self.seed + (2 * seq + stream) * int(draws.GOLDEN)) % wide
        x = (x ^ (x >> 30)) * int(draws.MIX_1) % wide
        x = (x ^ (x >> 27)) * int(draws.MIX_2) % wide
        return ((x ^ (x >> 31)) >> 11) * 2.0**-53

    def slot(self, key: int) -> int:
        x = key * int(draws.GOLDEN) % 2**64
        return (x ^ (x >> 32)) % self.slots

    def follow(self, batch: sj.Batch, shed: sj.ShedLog) -> None:
        log = shed.records()
        expired = {(int(r["stream"]), int(r["seq"])): r["expired"].tolist() for r in log if r["why"] == LATE}
        gone = [r for r in log if r["why"] != LATE]
        self.read_shed_log(gone)
        for i in range(len(batch)):
            ts, stream = int(batch.ts[i]), int(batch.stream[i])
            whole = list(self.arrived)  # and what follows in this instant
            for j in range(i, len(batch)):
                if batch.ts[j] != ts:
                    break
                whole[batch.stream[j]] += 1
            seq = self.arrived[stream]
            self.arrived[stream] += 1
            self.period_rows += 1
            self.clock[stream] = max(self.clock[stream], ts)
            self.expired = expired.get((stream, seq), [-math.inf, -math.inf])
            if not batch.null[i]:
                self.process(stream, seq, ts, int(batch.key[i]), float(batch.importance[i]), whole)
            self.read_shed_log(gone)
            if sum(self.arrived) % self.block == 0:
                self.end_block()

    def read_shed_log(self, gone: list[Any]) -> None:
        """Mark sampled rows as shed that were evicted after as many rows as have arrived now."""
        while gone and int(gone[0]["seen"].sum()) == sum(self.arrived):
            record = gone.pop(0)
            for one in self.sample:
                if (one["stream"], one["seq"]) == (int(record["stream"]), int(record["seq"])):
                    one["shed"] = True
                    self.period_work += state.SHED_WORK

    def process(self, stream: int, seq: int, ts: int, key: int, importance: float, whole: list[int]) -> None:
        for one in self.sample:
            was_there = one["shed"] and one["ts"] > self.expired[one["stream"]]
            if was_there and one["stream"] != stream and one["key"] == key and self.joins(one, stream, ts, whole):
                one["missing"] += 1 / one["probability"]
                one["missing_importance"] += (
                    OUTPUT[self.spec.importance](importance, one["importance"]) / one["probability"]
                )
                self.period_work += 1
        partners = self.count.get((1 - stream, self.slot(key)), 0)
        self.partners += partners
        probability = min(1.0, self.scale * (state.FLOOR + math.sqrt(partners * self.inverse_mean)))
        if self.draw(stream, seq) < probability:
            self.sample.append(
                dict(stream=stream, seq=seq, ts=ts, key=key, importance=importance, probability=probability)
                | dict(shed=False, missing=0.0, missing_importance=0.0)
            )
            self.period_work += state.INSERT_WORK
        mine = (stream, self.slot(key))
        self.count[mine] = self.count.get(mine, 0) + 1

    def joins(self, one: dict[str, Any], stream: int, ts: int, whole: list[int]) -> bool:
        """docs/semantics.md: the earlier row by time is in its time window, the older by arrival in its row window."""
        back, ahead = self.spec.windows[one["stream"]], self.spec.windows[stream]
        if isinstance(back, sj.TimeWindow) and ts - one["ts"] >= back.length:
            return False
        if isinstance(ahead, sj.TimeWindow) and one["ts"] - ts >= ahead.length:
            return False
        return isinstance(back, sj.TimeWindow) or one["seq"] >= whole[one["stream"]] - back.rows

    def is_expired(self, one: dict[str, Any]) -> bool:
        window = self.spec.windows[one["stream"]]
        if isinstance(window, sj.RowWindow):
            return one["seq"] < self.arrived[one["stream"]] - window.rows
        clock = self.clock[1 - one["stream"]]
        if self.spec.max_skew is not None:
            clock = max(clock, max(self.clock) - self.spec.max_skew)
        return one["ts"] + window.length <= clock - self.spec.lateness

    def end_block(self) -> None:
        mean = self.partners / self.block
        old = 1 / self.inverse_mean if self.inverse_mean > 0 else mean
        mean = 0.9 * old + 0.1 * mean
        self.inverse_mean, self.partners = 1 / mean if mean > 0 else 0.0, 0
        self.counted += self.block
        if self.counted >= state.COUNTED_ROWS - state.LONGEST_BLOCK:
            self.count = {place: count // 2 for place, count in self.count.items()}
            self.counted //= 2
            self.inverse_mean *= 2
        busy = self.period_work > self.credit + state.ALLOWED_WORK * self.period
        if len(self.sample) > self.most - self.block or self.period_rows >= self.period or busy:
            self.adjust_scale()

    def adjust_scale(self) -> None:
        self.thin(1.0)
        allowed = state.ALLOWED_WORK * self.period_rows
        affordable = allowed / max(self.period_work, 1)
        self.credit = min(self.credit + allowed - self.period_work, self.credit_limit)
        share = 1.0
        if self.credit < 0:
            self.credit, share = 0.0, min(max(affordable, 0.25), 0.7)
        while True:
            if len(self.sample) > 0.75 * self.most:
                share = min(share, 0.6 * self.most / len(self.sample))
            if share == 1.0:
                break
            self.thin(share)
            self.scale *= share
            share, affordable = 1.0, 0.0
        growth = min(0.8 * affordable, 0.6 * self.most / max(len(self.sample), 1), 2.0)
        if growth > 1.2:
            self.scale = min(self.scale * growth, 1 / state.FLOOR)
        self.period_rows = self.period_work = 0

    def thin(self, share: float) -> None:
        def stays(one: dict[str, Any]) -> bool:
            return not self.is_expired(one) and (
                share == 1 or self.draw(one["stream"], one["seq"]) < one["probability"] * share
            )

        self.removed += [one for one in self.sample if one["shed"] and not stays(one)]
        self.sample = [one for one in self.sample if stays(one)]
        for one in self.sample:
            one["probability"] *= share

    def sums(self) -> list[float]:
        seen = [one for one in self.sample + self.removed if one["shed"]]
        return [
            sum((1 if power == 1 else 1 - one["probability"]) * one[what] ** power for one in seen)
            for what in ("missing", "missing_importance")
            for power in (1, 2, 3)
        ]
