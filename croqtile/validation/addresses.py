"""Arithmetic on addresses of shared memory whose base is not known, only its alignment."""

from __future__ import annotations

from dataclasses import replace

from croqtile.validation.values import UNKNOWN, Scalar, Shared, signed, width

WINDOW_BITS = 18  # addresses of shared memory are below 256 KiB (sm_90: 227 KiB per CTA, 1 KiB of the system before it)


def address(name: str, form: list[str], args: tuple[Scalar, ...]) -> Scalar:
    """Arithmetic with one address. Exact for every base that is a multiple of its alignment."""
    numbers = [arg for arg in args if isinstance(arg, int)]
    places = [arg for arg in args if isinstance(arg, Shared)]
    if len(places) == 2 and name == "sub" and replace(places[0], offset=0) == replace(places[1], offset=0):
        return places[0].offset - places[1].offset & 0xFFFFFFFF
    if len(places) != 1 or len(numbers) != len(args) - 1:
        return UNKNOWN
    place = places[0]
    bits = width(form[-1])
    if name == "add" or (name == "sub" and isinstance(args[0], Shared)):
        number = signed(numbers[0], bits)
        return replace(place, offset=place.offset + (number if name == "add" else -number))
    if name == "mad" and isinstance(args[2], Shared) and "hi" not in form:
        number = signed(numbers[0], bits) * signed(numbers[1], bits)
        return replace(place, offset=place.offset + number)
    number = numbers[0] & ((1 << bits) - 1)
    unit = place.align >> place.shift
    if name == "shr" and isinstance(args[0], Shared):
        if place.offset % (1 << number) or place.offset < 0 or unit >> number == 0:
            return UNKNOWN
        return replace(place, offset=place.offset >> number, shift=place.shift + number)
    if unit == 0 or place.offset < 0:
        return UNKNOWN
    inside = place.offset % unit
    outside = place.offset - inside
    if name == "and":
        return _masked(place, number, bits)
    if name == "or":
        high = number // unit * unit
        if high % (1 << (WINDOW_BITS - place.shift)) or outside >> (WINDOW_BITS - place.shift):
            return UNKNOWN
        return replace(place, offset=outside + (inside | number % unit) + high)
    if name == "xor" and number < unit:
        return replace(place, offset=outside + (inside ^ number))
    return UNKNOWN


def _masked(place: Shared, mask: int, bits: int) -> Scalar:
    unit = place.align >> place.shift
    inside = place.offset % unit
    if mask < unit:
        return inside & mask
    window = (1 << (WINDOW_BITS - place.shift)) - 1
    if (mask | (unit - 1)) & window == window:  # keeps every bit of the base
        return replace(place, offset=place.offset - inside + (inside & mask))
    step = (1 << bits) - (mask | ((1 << bits) - 1) & ~window)  # bits above the window are zero in any case
    rounds = step > unit and step & (step - 1) == 0 and place.offset == step - 1
    if rounds and place.shift == 0:  # (base + step − 1) & −step
        return Shared(f"up({place.base}, {step})", step)
    return UNKNOWN
