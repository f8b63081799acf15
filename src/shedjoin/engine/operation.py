"""Operations: names by which the loop calls a kernel that depends on the form of the state.

The loop has one source. Numba compiles it once for each record type of the state; such a compiled loop is a *form*. An
operation is an intrinsic: while the loop is compiled it forwards to the kernel of that form, so a call costs what a direct
call costs, and the on-disk cache holds in every new process. With the JIT off it looks the kernel up by the record's dtype.
See docs/decisions/016-one-loop-in-forms.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

from shedjoin.engine.record_types import type_of

Kernel = Callable[..., Any]


def operation(kernel: Kernel, forms: Mapping[np.dtype[Any], Kernel | None]) -> Kernel:
    """An operation that calls `kernel`, but in the forms named here, by the dtype of their state, another one.

    All take the same parameters, passed by place, among them the state. Where the other one is None, the
    operation does nothing.
    """
    parameters = inspect.signature(kernel).parameters
    at = list(parameters).index("state")
    if numba.config.DISABLE_JIT:

        def look_up(*args: Any) -> Any:
            own = forms.get(args[at].record.dtype, kernel)
            return None if own is None else own(*args)

        return look_up
    by_type = {type_of(dtype): own for dtype, own in forms.items()}

    def forward(typing_context: Any, *args: Any) -> Any:
        own = by_type.get(args[at], kernel)
        if own is None:
            return types.none(*args), lambda context, builder, signature, values: context.get_dummy_value()
        dispatcher: Any = types.Dispatcher(own)
        called = dispatcher.get_call_type(typing_context, args, {})

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            call = context.get_function(dispatcher, called)
            context.add_linking_libs(getattr(call, "libs", ()))
            kinds = zip(values, args, called.args, strict=True)
            return call(builder, [context.cast(builder, value, given, taken) for value, given, taken in kinds])

        return called.return_type(*args), generate

    context = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    forward.__signature__ = inspect.Signature([context, *parameters.values()])  # type: ignore[attr-defined]
    forward.__name__ = forward.__qualname__ = kernel.__name__
    return intrinsic(forward)  # type: ignore[no-any-return]
