import pytest
from hypothesis import given
from hypothesis import strategies as st

from croqtile import symbolic
from croqtile.symbolic import Untranslatable, constant, counter, launch_value

K = launch_value("K", 1)
BM = launch_value("bm", 0)
I = counter("i")  # noqa: E741


def cdiv(a, b, facts=()):
    return symbolic.round_up_divide(a, constant(b), facts)


def test_equal_trip_counts_have_equal_text():
    rounded_up = symbolic.divide(K + constant(63), constant(64), ())
    assert str(cdiv(K, 64)) == str(rounded_up) == "cdiv(K, 64)"
    assert str(cdiv((BM + constant(1)).scaled(128), 128)) == "bm + 1"
    assert str(cdiv((BM + constant(1)).scaled(128), 64)) == "2 * bm + 2"
    assert str(symbolic.divide(K, constant(64), ())) == "K / 64"


def test_different_values_have_different_texts():
    two = constant(2)
    sums = [
        symbolic.remainder(I + cdiv(K, 2), two, ()),
        I + symbolic.remainder(cdiv(K, 2), two, ()),
        symbolic.compare("<", symbolic.compare("<", I, K, ()), BM, ()),
        symbolic.compare("<", I, symbolic.compare("<", K, BM, ()), ()),
        symbolic.multiply(I, symbolic.multiply(K, BM, ()) + constant(1), ()),
        symbolic.multiply(symbolic.multiply(I, K, ()), BM, ()) + I,
    ]
    assert len({str(value) for value in sums}) == len(sums)


def test_bounds():
    assert symbolic.low(cdiv(K, 64)) == 1
    assert symbolic.low(symbolic.divide(K, constant(64), ())) == 0
    assert symbolic.low(symbolic.multiply(K, cdiv(K, 2), ())) == 1
    assert symbolic.low(BM - constant(1)) == -1
    assert symbolic.low(I - K) is None
    assert symbolic.high(symbolic.remainder(I, constant(4), ())) == 3


def test_quotients_of_negative_values_are_bounded_whichever_way_they_round():
    rest = symbolic.launch_value("r", -100, -1)  # r / 64 is −2 … −1 in the analysis, −1 … 0 in C
    quotient = symbolic.divide(rest, constant(64), ())
    assert (symbolic.low(quotient), symbolic.high(quotient)) == (-2, 0)


def test_facts_improve_bounds():
    blocks = cdiv(K, 128)
    fact = blocks - constant(1) - BM  # bm < cdiv(K, 128)
    assert symbolic.low(blocks - BM) is None
    assert symbolic.low(blocks - BM, (fact,)) == 1
    assert symbolic.low((blocks - BM).scaled(128), (fact,)) == 128
    assert str(cdiv((blocks - BM).scaled(128), 128, (fact,))) == "cdiv(K, 128) - bm"
    guard = symbolic.compare(">", I, constant(0), ())
    assert symbolic.low(I - constant(1), symbolic.guard_facts(guard, True)) == 0
    assert symbolic.high(I, symbolic.guard_facts(guard, False)) == 0
    different = symbolic.compare("!=", I, constant(0), ())
    assert symbolic.low(I, symbolic.guard_facts(different, True)) == 1


def test_remainders_keep_their_relation():
    assert str(symbolic.remainder(I + constant(1), constant(4), ())) == "(i + 1) % 4"
    assert str(symbolic.remainder(K - constant(1), constant(2), ())) == "(K - 1) % 2"
    assert str(symbolic.remainder(I.scaled(4) + constant(3), constant(4), ())) == "3"
    inner = symbolic.remainder(I, constant(3), ())
    assert str(symbolic.remainder(inner + constant(1), constant(3), ())) == "(i + 1) % 3"


def test_counts_that_may_be_negative_do_not_split():
    """cdiv(K - 128, 64) is 0 in C for K = 28, and cdiv(K, 64) - 2 is -1."""
    assert str(cdiv(K - constant(128), 64)) == "cdiv(K - 128, 64)"
    assert str(cdiv(K - constant(64), 64)) == "cdiv(K, 64) - 1"
    assert str(symbolic.divide(K - constant(64), constant(64), ())) == "(K - 64) / 64"


def test_what_c_and_floor_division_see_differently_is_refused():
    with pytest.raises(Untranslatable, match="not provably ≥ 0"):
        symbolic.remainder(I - constant(1), constant(4), ())
    with pytest.raises(Untranslatable, match="divisor"):
        symbolic.divide(I, I, ())


def test_comparisons_fold_where_the_bounds_decide():
    assert symbolic.compare(">=", K, constant(1), ()) == constant(1)
    assert symbolic.compare("<", I, constant(0), ()) == constant(0)
    assert symbolic.compare("==", I, I, ()) == constant(1)
    assert str(symbolic.compare("<", I + constant(1), K, ())) == "i + 1 < K"
    condition = symbolic.compare("<", I, K, ())
    assert symbolic.logical("&&", constant(1), condition) == condition
    assert str(symbolic.logical("&&", constant(1), I)) == "i != 0"  # 0 or 1, and not i itself
    assert symbolic.logical("||", constant(2), I) == constant(1)


def test_extremes_fold():
    assert symbolic.extreme("max", K, constant(1), ()) == K
    assert symbolic.extreme("min", K, constant(0), ()) == constant(0)
    assert str(symbolic.extreme("max", BM, K, ())) == "max(K, bm)"
    assert symbolic.low(symbolic.extreme("max", BM, constant(3), ())) == 3


# --------------------------------------------------------------------------------------------------------------
# Against evaluation: whatever the normal form, the value is that of the C expression.

values = st.integers(0, 40)
leaves = st.one_of(st.integers(0, 9), st.sampled_from(["i", "K"]))
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "<", "<=", ">", ">=", "==", "!=", "max", "min"]), inner, inner),
        st.tuples(st.sampled_from(["/", "%", "cdiv"]), inner, st.integers(1, 6)),
    ),
    max_leaves=6,
)


def build(e):
    if isinstance(e, int):
        return constant(e)
    if isinstance(e, str):
        return {"i": I, "K": K}[e]
    op, left, right = e[0], build(e[1]), build(e[2])
    if op in ("+", "-"):
        return left + right if op == "+" else left - right
    table = {"*": symbolic.multiply, "/": symbolic.divide, "%": symbolic.remainder, "cdiv": symbolic.round_up_divide}
    if op in table:
        return table[op](left, right, ())
    return symbolic.extreme(op, left, right, ()) if op in ("max", "min") else symbolic.compare(op, left, right, ())


def compute(e, env):
    if isinstance(e, int):
        return e
    if isinstance(e, str):
        return env[e]
    op, a, b = e[0], compute(e[1], env), compute(e[2], env)
    return {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: quotient(a, b),
        "%": lambda: a - b * quotient(a, b),
        "cdiv": lambda: quotient(a + b - 1, b),
        "max": lambda: max(a, b),
        "min": lambda: min(a, b),
        "<": lambda: int(a < b),
        "<=": lambda: int(a <= b),
        ">": lambda: int(a > b),
        ">=": lambda: int(a >= b),
        "==": lambda: int(a == b),
        "!=": lambda: int(a != b),
    }[op]()


def quotient(a, b):
    """As in C: towards zero."""
    return a // b if a >= 0 else -(-a // b)


def value_of(affine, env):
    total = affine.constant
    for atom, coefficient in affine.terms:
        if atom.operands:
            a, b = (value_of(operand, env) for operand in atom.operands)
            total += coefficient * compute((atom.op, a, b), env)
        else:
            total += coefficient * env[atom.text]
    return total


@given(expressions, values, st.integers(1, 40))
def test_the_normal_form_has_the_same_value(e, i, k):
    env = {"i": i, "K": k}
    try:
        affine = build(e)
    except Untranslatable:
        return
    wanted = compute(e, env)
    assert value_of(affine, env) == wanted
    low, high = symbolic.low(affine), symbolic.high(affine)
    assert low is None or low <= wanted
    assert high is None or wanted <= high
