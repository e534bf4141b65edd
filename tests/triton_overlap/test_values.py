"""The arithmetic of rings is recognised; nothing else is taken for it."""

from __future__ import annotations

from triton_overlap.values import Key, apply, const, counter, mentions

C, N = counter("i"), ("arg", "n")


def binary(name: str, left: Key, right: Key) -> Key:
    return apply(f"arith.{name}", [left, right], "i32")


def test_slot_and_parity_of_a_signed_loop_variable() -> None:
    assert binary("remsi", C, const(3)) == ("rem", C, 3)
    assert binary("andi", binary("divsi", C, const(3)), const(1)) == ("parity", C, 3, 0)


def test_slot_and_parity_of_a_running_count() -> None:
    quotient = binary("divui", C, const(3))
    slot = binary("subi", C, binary("muli", quotient, const(3)))
    assert apply("arith.trunci", [slot], "i32") == ("rem", C, 3)
    phase = apply("arith.trunci", [binary("andi", quotient, const(1))], "i1")
    assert binary("xori", phase, const(1)) == ("parity", C, 3, 1)
    assert apply("arith.extsi", [phase], "i32") == ("parity", C, 3, 0)


def test_another_factor_is_no_slot() -> None:
    quotient = binary("divui", C, const(3))
    assert binary("subi", C, binary("muli", quotient, const(4)))[0] == "op"
    assert binary("subi", N, binary("muli", quotient, const(3)))[0] == "op"


def test_only_counters_are_known_not_to_be_negative() -> None:
    assert binary("remsi", N, const(3))[0] == "op"
    assert binary("divsi", N, const(3))[0] == "op"


def test_a_slot_cut_to_one_bit_is_a_parity_only_for_two_slots() -> None:
    assert apply("arith.trunci", [("rem", C, 2)], "i1") == ("parity", C, 1, 0)
    assert apply("arith.trunci", [("rem", C, 3)], "i1")[0] == "op"


def test_the_number_of_a_tile() -> None:
    variable = ("induction", "t", N, ("arg", "step"))
    tile = binary("divui", binary("subi", variable, N), ("arg", "step"))
    assert tile == counter("t")
    assert binary("andi", binary("addi", tile, const(1)), const(1)) == ("parity", tile, 1, 1)
    assert binary("divui", binary("subi", variable, N), ("arg", "other"))[0] == "op"


def test_equal_keys_for_equal_arithmetic() -> None:
    assert binary("addi", const(3), N) == binary("addi", N, const(3))
    assert binary("subi", const(3), N) != binary("subi", N, const(3))
    assert binary("muli", const(4), const(5)) == const(20)


def test_what_a_key_depends_on() -> None:
    key = binary("addi", N, ("rem", C, 3))
    assert mentions(key, frozenset({"counter"})) and not mentions(key, frozenset({"induction"}))
