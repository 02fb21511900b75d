"""How the kernels are compiled: once, kept on disk where that is possible, without the interpreter's lock."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core import cgutils as _cgutils
from numba.core import types
from numba.extending import intrinsic

P = ParamSpec("P")
R = TypeVar("R")

cgutils: Any = _cgutils


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """The function as machine code. Where no cache can be kept (a package in a zip file), it goes without."""
    try:
        made: Callable[P, R] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        made = numba.njit(nogil=True)(function)
    return made


def _copy_bytes(typing: Any, target: Any, target_at: Any, source: Any, source_at: Any, count: Any) -> Any:
    signature = types.void(target, types.intp, source, types.intp, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to = context.make_array(signature.args[0])(context, builder, arguments[0])
        of = context.make_array(signature.args[2])(context, builder, arguments[2])
        to_pointer = builder.gep(to.data, [arguments[1]])
        of_pointer = builder.gep(of.data, [arguments[3]])
        cgutils.raw_memcpy(builder, to_pointer, of_pointer, arguments[4], context.get_constant(types.intp, 1))
        return context.get_dummy_value()

    return signature, generate


copy_bytes: Any = intrinsic(_copy_bytes)
"""``memcpy`` between two byte arrays; several times as fast as a loop over bytes."""
