"""Identifiers that generated C++ must not use as names: keywords, macros, types and functions that it uses itself."""

from __future__ import annotations

import re
from functools import cache

from croqtile.runtime import DIRECTORY

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype
default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template
this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
while xor xor_eq threadIdx blockIdx blockDim gridDim warpSize

NULL INFINITY NAN HUGE_VAL HUGE_VALF EOF BUFSIZ RAND_MAX assert errno stdin stdout stderr
M_E M_PI M_LN2 M_LOG2E M_SQRT2 CHAR_BIT INT_MAX INT_MIN UINT_MAX FLT_MAX FLT_MIN FLT_EPSILON
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t dim3 CUtensorMap
max min fmaxf fminf choreo std
"""
_DEFINITION = re.compile(r"^(?:__host__|__device__)[^(]*?(\w+)\(|^struct (\w+)", re.MULTILINE)


@cache
def reserved() -> frozenset[str]:
    """All of them."""
    header = (DIRECTORY / "choreo_device.cuh").read_text(encoding="utf-8")
    defined = (function or struct for function, struct in _DEFINITION.findall(header))
    return frozenset((*_WORDS.split(), *defined))
