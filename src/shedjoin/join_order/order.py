"""JoinOrder: which windows new tuples walk, in which order, what that costs, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shedjoin.join_order.model import Model, origin_first


@dataclass(frozen=True)
class JoinOrder:
    """An order for each origin, with its expected cost in comparisons per time unit.

    Attributes
    ----------
    orders
        For each stream, the order in which its new tuples meet the windows; each names all streams.
    cost
        Comparisons per time unit, all origins together.
    """

    model: Model
    orders: tuple[tuple[int, ...], ...]
    cost: float

    @classmethod
    def of_global(
        cls, model: Model, order: Sequence[int], cost: float | None = None, *, naive: bool = False
    ) -> JoinOrder:
        """The plan that follows from one order for all."""
        model.check(order)
        orders = tuple(tuple(order) if naive else origin_first(origin, order) for origin in range(model.many))
        return cls(model, orders, model.cost_of_orders(orders) if cost is None else cost)

    def explain(self) -> str:
        """Order, expected cost and why, as lines of text.

        Examples
        --------
        >>> from shedjoin.join_order.model import StreamStats
        >>> slow, fast = StreamStats(1, 100, 50), StreamStats(10, 100, 50, buckets=5)
        >>> print(JoinOrder.of_global(Model.of([slow, fast], names=["slow", "fast"]), (0, 1)).explain())
        a new tuple of slow: fast                        200 comparisons per time unit
          fast: 1 passed down x 200 looked at (1000 tuples / 5 buckets), of which 1 in 50 goes on: 20 results
        a new tuple of fast: slow                      1,000 comparisons per time unit
          slow: 1 passed down x 100 looked at (100 tuples, scanned), of which 1 in 50 goes on: 2 results
        in all 1,200 comparisons per time unit
        """
        lines = []
        for origin, order in enumerate(self.orders):
            lines += self._explain_origin(origin, order)
        lines.append(f"in all {_plain(self.cost)} comparisons per time unit")
        return "\n".join(lines)

    def _explain_origin(self, origin: int, order: tuple[int, ...]) -> list[str]:
        model, names = self.model, self.model.names
        first = order[0] == origin
        head = f"a new tuple of {names[origin]}: " + ", ".join(
            names[stream] if stream != origin else "the new ones" for stream in order[1 if first else 0 :]
        )
        cost = model.origin_cost(origin, order)
        lines = [f"{head:<40} {_plain(cost):>11} comparisons per time unit"]
        if not first:
            lines.append(f"  the outermost loop is over {names[order[0]]}: {_plain(model.size(order[0]))} tuples")
        passed = (1.0 if model.tau == 0 else model.fresh(origin)) if first else model.size(order[0])
        bound = [order[0]]
        for stream in order[1:]:
            size = model.fresh(origin) if stream == origin else model.size(stream)
            share, indexed, linked = self._share(stream, bound)
            looked_at = size / model.streams[stream].buckets if indexed else size
            how = f"/ {_plain(model.streams[stream].buckets)} buckets" if looked_at < size else ""
            going = passed * size * share
            last = stream == order[-1]
            end = "results" if last else "passed down"
            lines.append(
                f"  {names[stream]}: {_plain(passed)} passed down x {_plain(looked_at)} looked at "
                f"({_plain(size, commas=False)} tuples{' ' + how if how else ', scanned'}), "
                f"{self._of_which(share, linked)}: {_plain(going)} {end}"
            )
            passed = going
            bound.append(stream)
        return lines

    def _share(self, stream: int, bound: Sequence[int]) -> tuple[float, bool, bool]:
        """(the share of pairs that goes on, whether an index can be used, whether there is any predicate)."""
        share, indexed, linked = 1.0, False, False
        for one in self.model.equalities:
            theirs = [one.values[other] for other in bound if other in one.values]
            if stream in one.values and theirs:
                share /= max(one.values[stream], min(theirs))
                indexed = linked = True
        for theta in self.model.thetas:
            if stream in (theta.left, theta.right) and ({theta.left, theta.right} - {stream}) & set(bound):
                share *= theta.selectivity
                linked = True
        return share, indexed, linked

    @staticmethod
    def _of_which(share: float, linked: bool) -> str:
        if share >= 1.0:
            why = "one value, as far as is known" if linked else "no predicate: a cross product"
            return f"all of which go on ({why})"
        return f"of which 1 in {_plain(1 / share)} goes on" if share > 0 else "of which none goes on"


def _plain(number: float, *, commas: bool = True) -> str:
    """A number as one says it."""
    text = f"{number:,.0f}" if abs(number) >= 100 or number == round(number) else f"{number:.3g}"
    return text if commas else text.replace(",", "")
