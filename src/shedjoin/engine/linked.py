"""How functions that only kernels call are compiled: once, and to be linked into those that call them.

Left to itself, numba compiles a function anew for each constant and each width of number that it is called with; and it optimises
and assembles every function by itself, with all that it calls, at every level of calls. Of what comes of that only the kernels
that Python calls are ever run. To go about it otherwise takes parts of numba that it may change, so versions that were
not tried compile as they always did: the same results, after a longer wait. See docs/decisions/003-handles-for-kernels.md.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.typed_passes import IRLegalization, NativeLowering

#: Versions of numba with which this was tried.
TRIED = ("0.68.",)


def known() -> bool:
    """Whether this numba is one with which all this was tried."""
    return str(numba.__version__).startswith(TRIED)


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """Code that waits to be linked: a light optimisation makes it small, the kernel it becomes a part of gets the whole."""

    def _optimize_final_module(self) -> None:
        passes, settings = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=1, cost="cheap"
        )
        passes.run(self._final_module, settings)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True  # and no machine code


class _Pass(AnalysisPass):  # type: ignore[misc]
    def __init__(self) -> None:  # abstract in numba's
        AnalysisPass.__init__(self)


@register_pass(mutates_CFG=False, analysis_only=True)
class _Open(_Pass):
    _name = "shedjoin_open_library"

    def run_pass(self, state: Any) -> bool:
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
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


class _Compiler(CompilerBase):  # type: ignore[misc]
    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_Open, IRLegalization)
        passes.add_pass_after(_Offer, NativeLowering)
        passes.finalize()
        return [passes]


#: What numba's njit is told of such a function.
OPTIONS = {"pipeline_class": _Compiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


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
