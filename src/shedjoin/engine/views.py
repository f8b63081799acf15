"""What kernels see of the arrays behind a handle: functions that numba compiles to a load or two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin
from numba.np.arrayobj import populate_array
from numpy.typing import DTypeLike

from shedjoin.engine.codes import MOST
from shedjoin.engine.record_types import type_of

Accessor = Callable[[Any], Any]
_BYTES = ir.IntType(8).as_pointer()


def records(name: str, dtype: DTypeLike) -> Callable[..., Any]:
    """One record of an array, by its place in memory order, without the detour over the array.

    The array may be of another dtype of the same size: a place then holds either kind of record.
    """
    if numba.config.DISABLE_JIT:
        return lambda handle, place: handle.arrays[name].view(dtype).reshape(-1)[place]
    record_type = type_of(np.dtype(dtype))
    size = np.dtype(dtype).itemsize

    @intrinsic
    def see(typing_context: Any, handle: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, name, size, handle, place, args)
            return builder.inttoptr(address, context.get_value_type(record_type))

        return record_type(handle, place), generate

    return see  # type: ignore[no-any-return]


def reader(name: str, dtype: DTypeLike, *, below: int | None = None) -> Callable[..., Any]:
    """One number of an array of shape (room,). Places are never negative, so none is counted from the end.

    Numbers that are all from 0 to under `below` make good places: the compiler knows that they are not negative.
    """
    if numba.config.DISABLE_JIT:
        return lambda handle, place: handle.arrays[name][place]
    number_type = type_of(np.dtype(dtype))
    size = np.dtype(dtype).itemsize

    @intrinsic
    def read(typing_context: Any, handle: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, name, size, handle, place, args)
            pointer = builder.inttoptr(address, context.get_data_type(number_type).as_pointer())
            number = context.unpack_value(builder, number_type, pointer)
            if below is not None:
                number.set_metadata("range", builder.module.add_metadata([number.type(0), number.type(below)]))
            return number

        return number_type(handle, place), generate

    return read  # type: ignore[no-any-return]


def writer(name: str, dtype: DTypeLike) -> Callable[..., Any]:
    """Put one number into an array of shape (room,)."""
    if numba.config.DISABLE_JIT:
        return lambda handle, place, value: handle.arrays[name].__setitem__(place, value)
    number_type = type_of(np.dtype(dtype))
    size = np.dtype(dtype).itemsize

    @intrinsic
    def write(typing_context: Any, handle: Any, place: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, name, size, handle, place, args)
            pointer = builder.inttoptr(address, context.get_data_type(number_type).as_pointer())
            context.pack_value(builder, number_type, context.cast(builder, args[2], value, number_type), pointer)
            return context.get_dummy_value()

        return types.void(handle, place, value), generate

    return write  # type: ignore[no-any-return]


def _ask_for(builder: Any, address: Any) -> None:
    """Ask for memory to be brought into the cache: for reading, to be kept, data."""
    word = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(prefetch, [address, word(0), word(3), word(1)])


def fetcher(name: str, dtype: DTypeLike) -> Callable[..., Any]:
    """A function that asks for one element of an array to be brought into the cache, and does not wait for it."""
    if numba.config.DISABLE_JIT:
        return lambda handle, place: None
    size = np.dtype(dtype).itemsize

    @intrinsic
    def fetch(typing_context: Any, handle: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, name, size, handle, place, args)
            _ask_for(builder, builder.inttoptr(address, _BYTES))
            return context.get_dummy_value()

        return types.void(handle, place), generate

    return fetch  # type: ignore[no-any-return]


@intrinsic
def _fetch_of(typing_context: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        _ask_for(builder, builder.bitcast(builder.gep(data, [args[1]]), _BYTES))
        return context.get_dummy_value()

    return types.void(array, place), generate


def fetch_of(array: Any, place: int) -> None:
    """The same for an element of an array that a kernel has already."""


if not numba.config.DISABLE_JIT:
    fetch_of = _fetch_of


def flat(name: str, dtype: DTypeLike) -> Accessor:
    """An array of shape (room,)."""
    return _accessor(name, dtype, ("room",))


def by_stream(name: str, dtype: DTypeLike) -> Accessor:
    """An array of shape (streams, room)."""
    return _accessor(name, dtype, (MOST, "room"))


def constants(dtype: np.dtype[Any], known: Mapping[str, int] | None = None) -> None:
    """Records of this dtype do not change while a kernel runs: what was read of one need not be read again.

    Some fields may be known beforehand: kernels do not read those.
    """
    if numba.config.DISABLE_JIT:
        return
    values = _known.setdefault(type_of(dtype), known or {})

    @lower_builtin("static_getitem", type_of(dtype), types.StringLiteral)
    def read(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if args[1] in values:
            return context.get_constant(signature.return_type, values[args[1]])
        return _load(context, builder, signature.args[0], args[0], args[1])


#: What is known beforehand of records, by their type.
_known: dict[Any, Mapping[str, int]] = {}


def setting(name: str) -> Callable[..., Any]:
    """One number, by stream, out of a record that does not change while a kernel runs."""
    if numba.config.DISABLE_JIT:
        return lambda record, stream: record[name][stream]

    @intrinsic
    def read(typing_context: Any, record: Any, stream: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            known = _known.get(record, {})
            if name in known:
                return context.get_constant(types.int64, known[name])
            first = cgutils.get_record_member(builder, args[0], record.offset(name), ir.IntType(64))
            place = builder.gep(first, [context.cast(builder, args[1], stream, types.int64)])
            number = builder.load(place)
            number.set_metadata("invariant.load", builder.module.add_metadata([]))
            return number

        return types.int64(record, stream), generate

    return read  # type: ignore[no-any-return]


def _load(context: Any, builder: Any, handle_type: Any, handle: Any, field: str) -> Any:
    """A number out of a handle's record that stays as it is while the kernel runs."""
    kind = context.get_data_type(handle_type.typeof(field))
    value = builder.load(cgutils.get_record_member(builder, handle, handle_type.offset(field), kind))
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def _address(context: Any, builder: Any, name: str, size: int, handle: Any, place: Any, args: Any) -> Any:
    """Where an element is: the kernels see to it that it is there."""
    start = _load(context, builder, handle, args[0], f"{name}_at")
    wide_place = context.cast(builder, args[1], place, types.int64)
    return builder.add(start, builder.mul(wide_place, context.get_constant(types.int64, size)))


def _accessor(name: str, dtype: DTypeLike, shape: tuple[int | str, ...]) -> Accessor:
    """A function from a handle to one of its arrays; compiled, it is no more than two loads."""
    if numba.config.DISABLE_JIT:
        return lambda handle: handle.arrays[name]
    array_type = types.Array(type_of(np.dtype(dtype)), len(shape), "C")

    @intrinsic
    def see(typing_context: Any, handle: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def number(field: str) -> Any:
                return _load(context, builder, handle, args[0], field)

            word = context.get_constant
            lengths = [number(f"{name}_room") if part == "room" else word(types.intp, part) for part in shape]
            item = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
            strides = [word(types.intp, item)]
            for length in reversed(lengths[1:]):
                strides.insert(0, builder.mul(strides[0], length))
            array = context.make_array(array_type)(context, builder)
            populate_array(
                array,
                data=builder.inttoptr(number(f"{name}_at"), array.data.type),
                shape=lengths,
                strides=strides,
                itemsize=word(types.intp, item),
                meminfo=None,  # the handle owns the memory
            )
            return array._getvalue()

        return array_type(handle), generate

    return see  # type: ignore[no-any-return]
