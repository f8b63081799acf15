"""The arguments of a join, written once: `shed_join`, `start` and the table [join] of job files take them from here.

To add an argument, add it to `JoinArgs` and use it where the join is planned. Signatures, docstrings, checks of names and job
files follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, cleandoc, signature
from textwrap import fill
from typing import Annotated, Any, Required, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints

from shedjoin.cpu.settings import Selective
from shedjoin.engine.reordering import Reordering
from shedjoin.errors import SpecError
from shedjoin.parse import nearest
from shedjoin.policies import Policy
from shedjoin.predicates import Predicate
from shedjoin.what_if import WhatIf

#: The default of `lateness`: the delay of the inputs' watermarks.
WATERMARK = "watermark"
INDENT = "    "
#: A column of each stream: one name for all, one each, or a dict by the streams' names.
Columns = str | Sequence[str] | Mapping[str, str]
Function = TypeVar("Function", bound=Callable[..., Any])


class JoinArgs(TypedDict, total=False):
    """The arguments of a join, as they are given: their type, what they mean, and their default, None if it is left out.

    A TypedDict, because type checkers read the arguments of `**args` from one (PEP 692).
    """

    on: Annotated[
        Columns | list[Columns] | None,
        "The key: a column name, a pair (left name, right name), a dict by the streams' names, or a list of these. Or a join "
        "graph: predicates between streams, such as 'left.x < right.y' or ['a.x = b.x', '|b.y - c.y| <= 5']. Nulls match "
        "nothing.",
    ]
    predicate: Annotated[
        Predicate | dict[str, Any] | None,
        'Instead of a key: `Overlap("tags", at_least=2)` and other predicates. Each row is stored in one shard and '
        "compared in all.",
    ]
    where: Annotated[
        str | None,
        "What else must be true of the rows of a result, in SQL: \"left.bid < right.price AND right.country IN ('DE', 'FR')\". "
        "Columns are qualified by the streams' names; a column that one stream has alone need not be. As in SQL a result is "
        "given if the condition is true, not null.",
    ]
    time: Annotated[
        Required[Columns],
        "The event time: a column name, a pair (left, right), or a dict by the streams' names. Timestamps, or whole numbers "
        "in a unit of your own.",
    ]
    window: Annotated[
        Any,
        'Rows join if their times differ by less than this: "10 minutes", a timedelta, a `TimeWindow` (of microseconds), a '
        "number in the unit of times that are whole numbers, or a pair of these (how long a left row and a right row are "
        "kept). Three and more rows join if none is older than the newest by its window. A number of rows, such as "
        '"1000 rows", counts the rows of all shards.',
    ]
    between: Annotated[
        Sequence[Any] | None,
        'In place of `window`, for two streams: a pair (low, high) such as ("0 seconds", "10 minutes"). Rows join if low <= '
        "right time - left time <= high, as with SQL's BETWEEN; both ends may be negative. A row is kept only while it can still "
        "find a partner.",
    ]
    how: Annotated[
        str,
        "The join type, by Spark's names: inner, left_semi, left_anti, left_outer, right_outer, full_outer (or left, semi, "
        "outer, ...). A row without a partner is given when it leaves its window, and only if it certainly has none; under a "
        "budget others are logged as unknown, and `refine` settles them. Of three and more streams: inner, left_semi, "
        "left_outer.",
        "inner",
    ]
    matches: Annotated[
        Sequence[int | None] | None,
        "A number for each stream, or None (0 in job files): its rows leave once they have found that many partners, such as "
        "(1, None) for orders that are paid once. Exact where no row has more partners.",
    ]
    budget: Annotated[
        Any,
        'How much all shards together may store: "200k tuples", "512 MB", a number of tuples, a `Budget`. Bytes are the memory '
        "that the state takes in Spark's Python workers. None: there is no limit, and the join is exact.",
    ]
    target: Annotated[
        Any,
        'The share of results to deliver, such as "95% recall". Memory follows it, in each shard, and the budget is its upper '
        "limit; metrics have what is in use. Of streaming joins. May change while a checkpoint lives.",
    ]
    error: Annotated[
        Any,
        'How wide the intervals of sums may be: {"by": "campaign", "sum": "price", "within": 0.02}. Half of the 95% interval of '
        "each group's sum over the results of one window's time is to be at most 2% of it. `by` is a column of the results or a "
        "list of them, `sum` one too; without them there is one group, and results are counted. Memory follows it in each shard, "
        "and the budget is its upper limit. For streaming joins of two streams with `weights`. May change while a checkpoint "
        "lives.",
    ]
    policy: Annotated[
        str | dict[str, Any] | Policy | None,
        'Which rows stay when memory is short: a name, a table of settings, or a policy. Default: "prospect"; "prob" for '
        'three and more streams and for row windows over several shards; "simp_prob" of partners met with a predicate.',
    ]
    importance: Annotated[
        str | Sequence[str | None] | Mapping[str, str] | None,
        "A column of positive numbers that says how much a row matters: a name, or a pair (left, right). None: all rows "
        "matter alike.",
    ]
    allocation: Annotated[
        str | None,
        '"variable" (default): streams compete for one memory. "fixed": each stream has its share (see `Budget`).',
    ]
    lateness: Annotated[
        Any,
        "How far a row may lag behind the newest row of its stream, from one micro-batch to the next, and miss nothing: "
        '"5 minutes"; 0 if rows arrive in the order of their times; None if rows never expire. Default: the delay of the '
        "inputs' watermarks. Streams without a watermark must give it. Later rows meet what is still stored; they are counted, "
        "logged and warned of.",
        WATERMARK,
    ]
    max_skew: Annotated[
        Any,
        "A stream that lags behind the other by more than this is treated as idle; expiry does not wait for it.",
    ]
    shards: Annotated[
        int | None,
        "The number of parts that keys are split into; of a join graph the most there may be. Default: Spark's parallelism, at "
        "most its shuffle partitions; more than these share tasks. A checkpoint keeps its number, unless `start` is given "
        "another.",
    ]
    rates: Annotated[
        float | Sequence[float] | Mapping[str, float] | None,
        "Of a join graph: how many rows each stream brings in the same time, by which its shards are arranged. Default: all "
        "bring as many.",
    ]
    select: Annotated[
        list[str] | dict[str, str] | None,
        'The columns of the result: names ("left.x" or "right.x" where both sides have x), or a dict from new names to such '
        "names. Default: all, as in Spark's own joins (keys of one name once and first, then left's, then right's).",
    ]
    suffixes: Annotated[
        Sequence[str] | None,
        'Endings for columns that both sides have, such as ("_left", "_right"). Without them such columns are an error.',
    ]
    combine: Annotated[
        str, "How the importance of a result follows from that of its rows: min, max, sum, product, mean.", "min"
    ]
    seed: Annotated[int, "The seed of policies that draw random numbers.", 0]
    shares: Annotated[
        str | None,
        'How shards share the budget: "adaptive" (default) gives each what the whole join would keep there, by what arrives (of '
        'a join graph: by the rows that its windows hold); "equal" gives all the same, as joins with a predicate '
        "do. May change while a checkpoint lives.",
    ]
    cache: Annotated[
        str | bool | None,
        "Where workers keep copies of the state beside Spark's state store: a directory, False for none, None for the "
        "default.",
    ]
    deadline: Annotated[
        Any,
        'How long a micro-batch may take: "2 seconds", a timedelta, or a number of seconds. If there are too many rows for '
        "that, each is compared with the most profitable part of the window only. May change while a checkpoint lives.",
    ]
    selective: Annotated[
        Selective | dict[str, Any] | None,
        "How that part is chosen: a `Selective`, or a table of its settings, such as {'basic': '30 seconds', 'sample': 0.2}. "
        "Default: basic windows of a twentieth of the window, ranked by a sample of a tenth of the rows. Without a deadline rows "
        "are always compared with the part `fraction`.",
    ]
    weights: Annotated[
        bool,
        "With policy='sample': results have two more columns. `sj_weight` is how many results of the exact join each stands for, "
        "so that weighted sums are unbiased; `sj_row` numbers the stored row that was found (of two streams). See `estimate`.",
        False,
    ]
    kind: Annotated[
        str | Sequence[str | None] | Mapping[str, str] | None,
        "A column with the type of each row, whole numbers from 0 on: with selective={'types': N} windows are searched by the "
        "importance that rows of a type bring. A name, or a pair (left, right).",
    ]
    front: Annotated[
        float | Sequence[float] | Mapping[str, float] | None,
        "The share of rows, from 0 to 1, that is dropped by lot before rows are sent to shards (dual2006's front shedding): a "
        "number, or a pair (left, right). Dropped rows are logged, and `refine` joins them later. May change while a checkpoint "
        "lives.",
    ]
    rear: Annotated[
        float | None,
        "The share of rows, from 0 to 1, that is stored without a probe (dual2006's rear shedding): those that would find the "
        "fewest partners. To know that, all rows wait for one window in an aux-window, and results come that much later.",
    ]
    what_if: Annotated[
        bool | WhatIf | dict[str, Any] | None,
        "Tell what other memories would deliver, from miniatures of the join that run beside it: True, a `WhatIf`, or a table of "
        "its settings. `shedjoin top`, metrics and the end of a run show it. May change while a checkpoint lives.",
    ]
    order: Annotated[
        str | Sequence[str] | Mapping[str, Sequence[str]] | None,
        "The join order of three and more streams, in each shard: a list of all streams, or one for each. Default: chosen from "
        "statistics while the join runs (see `JoinSpec`).",
    ]
    reordering: Annotated[
        Reordering | dict[str, Any] | None,
        "When a better join order is looked for: a `Reordering`, or a table such as {'every': 5000, 'drift': 0.1}.",
    ]
    index: Annotated[
        str | int | Mapping[str, str | int] | None,
        "How windows are searched: 'scan' (nested loops), a number of hash buckets, or a dict from streams to these. Default: by "
        "indexes that grow with the windows.",
    ]
    evaluate_every: Annotated[
        Any,
        "Join new rows in rounds of this much event time (lazy evaluation): results are out that much later, at most.",
    ]
    expire_every: Annotated[
        Any, "How often expired rows are removed, in event time. They join nothing in any case. Default: always."
    ]
    names: Annotated[
        Sequence[str] | None,
        "What three and more streams are called in `select`, the shed log, metrics and the archive. Default: s0, s1, s2, "
        "... Two are left and right.",
    ]


#: Settings of `JoinSpec` that have no meaning on Spark, with a sentence each.
NOT_ON_SPARK = {
    "cpu": "A virtual CPU works in virtual time, and shards in real time: give deadline.",
    "queue": "A queue holds the rows that a virtual CPU has not reached. Here rows wait in their source: give deadline, or drop "
    "some with front.",
    "dual": "The two halves of dual windows are arguments of their own: give front, and rear.",
    "counted_elsewhere": "Whether rows are counted over all shards follows from the windows and the number of shards.",
}


def check_known(names: Iterable[str]) -> None:
    """Refuse settings that have no meaning on Spark."""
    for name in names:
        if name in NOT_ON_SPARK:
            raise SpecError(f"{name}: {NOT_ON_SPARK[name]}")


def _parameter(name: str, hint: Any) -> Parameter:
    """An argument as signatures have it."""
    kind, _, default = (*get_args(hint), None)[:3]
    if get_origin(kind) is Required:
        (kind,), default = get_args(kind), Parameter.empty
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


_HINTS = get_type_hints(JoinArgs, include_extras=True)
PARAMETERS = {name: _parameter(name, hint) for name, hint in _HINTS.items()}
DOCS: dict[str, str] = {name: get_args(hint)[1] for name, hint in _HINTS.items()}


def takes_join_args(function: Function) -> Function:
    """Show the arguments of a join in the signature and the docstring of a function that has them as `**args`.

    Its docstring must end with its own parameters.
    """
    whole = signature(function)
    own = [one for one in whole.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    function.__signature__ = whole.replace(parameters=[*own, *PARAMETERS.values()])  # type: ignore[attr-defined]
    docs = [f"{name}\n{fill(doc, 120, initial_indent=INDENT, subsequent_indent=INDENT)}" for name, doc in DOCS.items()]
    function.__doc__ = "\n".join([cleandoc(function.__doc__ or ""), *docs])
    return function


def complete(args: JoinArgs, function: Callable[..., Any]) -> JoinArgs:
    """All arguments of a join that a function was called with; defaults where they are not given."""
    check_known(args)
    known = [one.name for one in signature(function).parameters.values() if one.kind is Parameter.KEYWORD_ONLY]
    for name in args:
        if name not in PARAMETERS:
            perhaps = f" (perhaps {near}?)" if (near := nearest(name, known)) else ""
            raise SpecError(f"{function.__name__} has no argument {name!r}{perhaps}: it takes {', '.join(known)}")
    missing = [name for name, one in PARAMETERS.items() if one.default is Parameter.empty and name not in args]
    if missing:
        raise SpecError(f"{missing[0]} is missing. {DOCS[missing[0]]}")
    if args.get("window") is None and args.get("between") is None:
        raise SpecError(
            "window is missing: give a window such as '10 minutes' (a number, where times are whole numbers), or "
            "between=('0 seconds', '10 minutes')"
        )
    return cast(JoinArgs, {**{name: one.default for name, one in PARAMETERS.items()}, **args})
