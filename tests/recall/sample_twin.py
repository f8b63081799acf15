"""A slow and obvious twin of the kernels that follow witnesses."""

from __future__ import annotations

import math
from typing import Any

from recall_runs import OUTPUT

import shedjoin as sj
from shedjoin.engine.codes import LATE
from shedjoin.recall import pairs as live_recall
from shedjoin.recall.sample import draws as lots
from shedjoin.recall.sample import state


class Twin:
    """The same sample, row by row, with nothing but lists. `quality.live` says what it does and why."""

    def __init__(self, spec: sj.JoinSpec, seed: int, witnesses: int) -> None:
        self.spec, self.most = spec, witnesses
        fresh = live_recall._state(spec, seed, witnesses)
        self.seed, self.block, self.period = int(fresh["seed"][0]), int(fresh["block"][0]), int(fresh["period"][0])
        self.bank = self.savings = float(fresh["bank"][0])
        self.cells = 1 << (2 * witnesses - 1).bit_length()
        self.scale, self.gain, self.others, self.counted = 1 / state.FLOOR, 0.0, 0, 0
        self.count: dict[tuple[int, int], int] = {}
        self.arrived, self.clock = [0, 0], [-math.inf, -math.inf]
        self.sample: list[dict[str, Any]] = []
        self.ended: list[dict[str, Any]] = []
        self.rows = self.work = 0

    def lot(self, stream: int, seq: int) -> float:
        wide = 2**64
        x = (self.seed + (2 * seq + stream) * int(lots.GOLDEN)) % wide
        x = (x ^ (x >> 30)) * int(lots.FIRST) % wide
        x = (x ^ (x >> 27)) * int(lots.SECOND) % wide
        return ((x ^ (x >> 31)) >> 11) * 2.0**-53

    def cell(self, key: int) -> int:
        x = key * int(lots.GOLDEN) % 2**64
        return (x ^ (x >> 32)) % self.cells

    def follow(self, batch: sj.Batch, shed: sj.ShedLog) -> None:
        log = shed.records()
        late = {(int(r["stream"]), int(r["seq"])) for r in log if r["why"] == LATE}
        gone = [r for r in log if r["why"] != LATE]
        self.note(gone)
        for i in range(len(batch)):
            ts, stream = int(batch.ts[i]), int(batch.stream[i])
            whole = list(self.arrived)  # and what follows in this instant
            for j in range(i, len(batch)):
                if batch.ts[j] != ts:
                    break
                whole[batch.stream[j]] += 1
            seq = self.arrived[stream]
            self.arrived[stream] += 1
            self.rows += 1
            if (stream, seq) not in late:
                self.clock[stream] = max(self.clock[stream], ts)
                if not batch.null[i]:
                    self.take_in(stream, seq, ts, int(batch.key[i]), float(batch.importance[i]), whole)
            self.note(gone)
            if sum(self.arrived) % self.block == 0:
                self.end_block()

    def note(self, gone: list[Any]) -> None:
        """Whoever had left when so many rows had come is a witness, if drawn."""
        while gone and int(gone[0]["seen0"]) + int(gone[0]["seen1"]) == sum(self.arrived):
            record = gone.pop(0)
            for one in self.sample:
                if (one["stream"], one["seq"]) == (int(record["stream"]), int(record["seq"])):
                    one["shed"] = True
                    self.work += state.ACTIVATE

    def take_in(self, stream: int, seq: int, ts: int, key: int, importance: float, whole: list[int]) -> None:
        for one in self.sample:
            if one["shed"] and one["stream"] != stream and one["key"] == key and self.joins(one, stream, ts, whole):
                one["results"] += 1 / one["keep"]
                one["worth"] += OUTPUT[self.spec.importance](importance, one["importance"]) / one["keep"]
                self.work += 1
        other = self.count.get((1 - stream, self.cell(key)), 0)
        self.others += other
        keep = min(1.0, self.scale * (state.FLOOR + math.sqrt(other * self.gain)))
        if self.lot(stream, seq) < keep:
            self.sample.append(
                dict(stream=stream, seq=seq, ts=ts, key=key, importance=importance, keep=keep)
                | dict(shed=False, results=0.0, worth=0.0)
            )
            self.work += state.REMEMBER
        mine = (stream, self.cell(key))
        self.count[mine] = self.count.get(mine, 0) + 1

    def joins(self, one: dict[str, Any], stream: int, ts: int, whole: list[int]) -> bool:
        """docs/semantics.md: the earlier by time is in its window, and the older one by arrival among its last rows."""
        back, ahead = self.spec.windows[one["stream"]], self.spec.windows[stream]
        if isinstance(back, sj.TimeWindow) and ts - one["ts"] >= back.length:
            return False
        if isinstance(ahead, sj.TimeWindow) and one["ts"] - ts >= ahead.length:
            return False
        return isinstance(back, sj.TimeWindow) or one["seq"] >= whole[one["stream"]] - back.rows

    def is_over(self, one: dict[str, Any]) -> bool:
        window = self.spec.windows[one["stream"]]
        if isinstance(window, sj.RowWindow):
            return one["seq"] < self.arrived[one["stream"]] - window.rows
        clock = self.clock[1 - one["stream"]]
        if self.spec.max_skew is not None:
            clock = max(clock, max(self.clock) - self.spec.max_skew)
        return one["ts"] + window.length <= clock - self.spec.lateness

    def end_block(self) -> None:
        mean = self.others / self.block
        old = 1 / self.gain if self.gain > 0 else mean
        mean = 0.9 * old + 0.1 * mean
        self.gain, self.others = 1 / mean if mean > 0 else 0.0, 0
        self.counted += self.block
        if self.counted >= state.MEMORY - state.LONGEST_BLOCK:
            self.count = {place: count // 2 for place, count in self.count.items()}
            self.counted //= 2
            self.gain *= 2
        busy = self.work > self.bank + state.ALLOWED * self.period
        if len(self.sample) > self.most - self.block or self.rows >= self.period or busy:
            self.look_round()

    def look_round(self) -> None:
        self.drop(1.0)
        allowed = state.ALLOWED * self.rows
        affordable = allowed / max(self.work, 1)
        self.bank = min(self.bank + allowed - self.work, self.savings)
        share = 1.0
        if self.bank < 0:
            self.bank, share = 0.0, min(max(affordable, 0.25), 0.7)
        while True:
            if len(self.sample) > 0.75 * self.most:
                share = min(share, 0.6 * self.most / len(self.sample))
            if share == 1.0:
                break
            self.drop(share)
            self.scale *= share
            share, affordable = 1.0, 0.0
        growth = min(0.8 * affordable, 0.6 * self.most / max(len(self.sample), 1), 2.0)
        if growth > 1.2:
            self.scale = min(self.scale * growth, 1 / state.FLOOR)
        self.rows = self.work = 0

    def drop(self, share: float) -> None:
        def stays(one: dict[str, Any]) -> bool:
            return not self.is_over(one) and (share == 1 or self.lot(one["stream"], one["seq"]) < one["keep"] * share)

        self.ended += [one for one in self.sample if one["shed"] and not stays(one)]
        self.sample = [one for one in self.sample if stays(one)]
        for one in self.sample:
            one["keep"] *= share

    def sums(self) -> list[float]:
        seen = [one for one in self.sample + self.ended if one["shed"]]
        return [
            sum((1 if power == 1 else 1 - one["keep"]) * one[what] ** power for one in seen)
            for what in ("results", "worth")
            for power in (1, 2, 3)
        ]
