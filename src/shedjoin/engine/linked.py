"""How kernels are compiled: every function once, and every kernel optimised once.

Left to itself, numba compiles a function anew for each constant and each width of number that it is called with; and it optimises
and assembles every function with all that it calls, at every level of calls. Only kernels that Python calls are ever run.
So here a function is translated and left as it is. A kernel links all functions below it and is optimised as a whole.
That takes parts of numba that it may change. Versions that were not tried compile as they always did: the same results, after a
longer wait. See docs/decisions/003-handles-for-kernels.md.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import event, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import AnalysisPass, PassManager, register_pass
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, GenericRewrites, IRProcessing, ReconstructSSA, TranslateByteCode

#: Versions of numba with which this was tried.
TRIED = ("0.68.",)
#: Functions marked `inlined` are inlined if they have at most this many instructions; larger ones where LLVM thinks it pays.
#: Without a limit the form MANY takes three times as long to compile, and runs no faster.
INLINED_AT_MOST = 200


def known() -> bool:
    """Whether this numba is one with which all this was tried."""
    return str(numba.__version__).startswith(TRIED)


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """A function that waits to be linked into the kernels that call it."""

    #: Whether callers are to inline it.
    inlined = False

    def finalize(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _Kernel(JITCodeLibrary):  # type: ignore[misc]
    """A kernel, linked with all functions below it."""

    #: The size up to which functions are inlined.
    inlined_at_most = INLINED_AT_MOST

    def finalize(self) -> None:
        below: dict[Any, None] = dict.fromkeys(self._linking_libraries)
        waiting = list(below)
        while waiting:
            further = [one for one in waiting.pop()._linking_libraries if one not in below]
            below.update(dict.fromkeys(further))
            waiting += further
        self._linking_libraries: list[Any] = list(below)
        super().finalize()

    def _optimize_final_module(self) -> None:
        linked = {function.name: function for function in self._final_module.functions}
        for part in self._linking_libraries:
            if isinstance(part, _Part) and part.inlined:
                for own in part.get_defined_functions():
                    if own.name in linked and _is_within(own, self.inlined_at_most):
                        linked[own.name].add_function_attribute("alwaysinline")
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = False  # there is nothing to vectorise
        builder = llvm.create_pass_builder(self._codegen._tm, options)
        builder.getModulePassManager().run(self._final_module, builder)


def _is_within(function: Any, limit: int) -> bool:
    """Whether a function has at most this many instructions."""
    size = 0
    for block in function.blocks:
        size += sum(1 for _ in block.instructions)
        if size > limit:
            return False
    return True


class _Pass(AnalysisPass):  # type: ignore[misc]
    def __init__(self) -> None:  # abstract in numba's
        AnalysisPass.__init__(self)


@register_pass(mutates_CFG=False, analysis_only=True)
class _OpenPart(_Pass):
    _name = "shedjoin_open_part"

    def run_pass(self, state: Any) -> bool:
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.inlined = bool(state.flags.forceinline)
        state.flags.forceinline = False  # the kernel decides
        state.flags.no_compile = True
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _OpenKernel(_Pass):
    _name = "shedjoin_open_kernel"

    def run_pass(self, state: Any) -> bool:
        state.library = _Kernel(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.inlined_at_most = getattr(state.func_id.func, "inlined_at_most", INLINED_AT_MOST)
        state.library.enable_object_caching()
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _Offer(_Pass):
    """Let kernels find the function, as numba does with one that it has compiled; and Python find out that it cannot call it."""

    _name = "shedjoin_offer_to_kernels"

    def run_pass(self, state: Any) -> bool:
        name = state.func_id.func_qualname

        def refuse(*args: object, **kwargs: object) -> None:
            raise TypeError(f"{name} is a part of kernels, and only they can call it; it was called from Python")

        state.targetctx.insert_user_function(refuse, state.cr.fndesc, [state.library])
        state["cr"] = state.cr._replace(cfunc=refuse)
        return False


class _Passes(PassManager):  # type: ignore[misc]
    """Runs a pass and nothing else: numba also times it, tells listeners of it, and works out afresh where variables live.

    (`IRLegalization` does the last for the passes behind it.)
    """

    def _runPass(self, index: int, one: Any, state: Any) -> None:  # noqa: N802 - numba names it
        one.analysis = self._analysis
        one.run_initialization(state)
        one.run_pass(state)
        one.run_finalizer(state)


def _pipeline(opening: type[_Pass], *offering: type[_Pass]) -> list[Any]:
    """Numba's passes, less those for closures, array expressions, literals and reports, which kernels have no use for."""
    passes = _Passes("shedjoin")
    before = (TranslateByteCode, FixupArgs, IRProcessing, GenericRewrites, ReconstructSSA)
    typed = (NopythonTypeInference, PreLowerStripPhis, IRLegalization)
    for one in (*before, *typed, opening, NativeLowering, *offering, NoPythonBackend):
        passes.add_pass(one, one.__name__)
    passes.finalize()
    return [passes]


class _PartCompiler(CompilerBase):  # type: ignore[misc]
    def define_pipelines(self) -> list[Any]:
        return _pipeline(_OpenPart, _Offer)


#: While kernels are compiled, garbage is collected after this many new objects only: most of them stay.
OBJECTS_AT_ONCE = 100_000


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Collect garbage less often, which took a seventh of the time, and tell listeners nothing.

    (numba times locks: each of 20,000 calls of LLVM told as many listeners as functions were being compiled at that moment.)
    """
    before, broadcast = gc.get_threshold(), event.broadcast
    gc.set_threshold(OBJECTS_AT_ONCE, *before[1:])
    event.broadcast = lambda _: None
    try:
        yield
    finally:
        gc.set_threshold(*before)
        event.broadcast = broadcast


class _KernelCompiler(CompilerBase):  # type: ignore[misc]
    def define_pipelines(self) -> list[Any]:
        return _pipeline(_OpenKernel)

    def _compile_core(self) -> Any:
        with _undisturbed():
            return super()._compile_core()


#: What numba's njit is told of a function that only kernels call, and of a kernel.
PART = {"pipeline_class": _PartCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
KERNEL = {"pipeline_class": _KernelCompiler, "no_cfunc_wrapper": True}


def load_alone(compiled: Any) -> None:
    """Load a kernel from disk without numba's own library of functions, scipy's included: machine code has no use for them.

    Compiling brings them in.
    """
    cache = compiled._cache

    def load(signature: Any, target: Any) -> Any:
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(signature, target)

    cache.load_overload = load


def _widened(kind: types.Type) -> types.Type:
    """All whole numbers that have a sign are of 64 bits."""
    if isinstance(kind, types.BooleanLiteral):
        return types.boolean
    if isinstance(kind, types.IntegerLiteral) or kind in types.signed_domain:
        return types.int64
    return kind


def compile_once(compiled: Any) -> None:
    """Let kernels hand over whole numbers as 64 bits to a function, so that there is one of it for all."""
    resolve = compiled.get_call_template

    def resolve_widened(args: Any, kws: dict[str, Any]) -> Any:
        return resolve([_widened(kind) for kind in args], {name: _widened(kind) for name, kind in kws.items()})

    compiled.get_call_template = resolve_widened
    compiled._insert = lambda *args, **kwargs: None  # nothing for Python to call
