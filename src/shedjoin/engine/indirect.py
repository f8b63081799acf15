"""Kernels that are compiled apart, when a join first needs them. Others call them through an address in the state.

What one layout or one dial needs would else be compiled into every form of the loop, and again at each level of calls. A call
through an address takes about 2 ns, so this is for what takes far longer itself. See docs/decisions/018-one-engine.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numba
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from shedjoin.engine.codes import SETTINGS_RECORD
from shedjoin.engine.handle import Handle
from shedjoin.engine.jit import entry
from shedjoin.engine.record_types import type_of
from shedjoin.engine.records import MANY_BUFFERS, MANY_STATE, code_field

Kernel = Callable[..., Any]
#: What kernels call their settings, state and buffers.
_RECORDS = {"cfg": SETTINGS_RECORD, "state": MANY_STATE, "buffers": MANY_BUFFERS}
_RETURNS = {"nothing": types.none, "truth": types.boolean, "whole": types.int64, "number": types.float64}
#: The compiled functions and their signatures, by what they are called in `records.CODES`.
_known: dict[str, tuple[Any, Any]] = {}


def indirect(
    name: str, returns: str = "nothing", made: Callable[[Kernel], Kernel] = entry
) -> Callable[[Kernel], Kernel]:
    """Compile a kernel of the form MANY apart. All parameters but settings, state and buffers are whole numbers."""

    def make(function: Kernel) -> Kernel:
        if numba.config.DISABLE_JIT:
            return function
        parameters = inspect.signature(function).parameters
        kinds = [type_of(_RECORDS[one]) if one in _RECORDS else types.int64 for one in parameters]
        signature = _RETURNS[returns](*kinds)
        _known[name] = made(function), signature
        return _caller(name, function, signature, list(parameters).index("state"))

    return make


def _caller(name: str, function: Kernel, signature: Any, at: int) -> Kernel:
    field = code_field(name)

    def call(typing_context: Any, *args: Any) -> Any:
        def generate(context: Any, builder: Any, called: Any, values: Any) -> Any:
            state = signature.args[at]
            word = context.get_data_type(types.int64)
            address = builder.load(cgutils.get_record_member(builder, values[at], state.offset(field), word))
            convention = context.call_conv
            kind = convention.get_function_type(signature.return_type, signature.args)
            code = builder.inttoptr(address, kind.as_pointer())
            given = zip(values, called.args, signature.args, strict=True)
            wide = [context.cast(builder, value, was, wanted) for value, was, wanted in given]
            _, result = convention.call_function(builder, code, signature.return_type, signature.args, wide)
            return context.get_dummy_value() if signature.return_type is types.none else result

        return signature.return_type(*args), generate

    context = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters
    call.__signature__ = inspect.Signature([context, *parameters.values()])  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = function.__name__
    return intrinsic(call)  # type: ignore[no-any-return]


def link(state: Handle, names: Sequence[str]) -> None:
    """Put the addresses of these kernels into a state; compiles those that are not on disk."""
    if numba.config.DISABLE_JIT:
        return
    for name in names:
        compiled, signature = _known[name]
        compiled.compile(signature)
        result = compiled.overloads[signature.args]
        state[code_field(name)] = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
