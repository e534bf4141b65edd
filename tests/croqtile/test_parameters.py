import pytest

from croqtile import symbolic
from croqtile.parameters import Parameters
from croqtile.symbolic import Untranslatable, constant, counter, launch_value
from hb_analyzer import model

K, M = launch_value("K", 1), launch_value("M", 1)
BM = launch_value("bm", 0)
BLOCKS = symbolic.round_up_divide(K, constant(64), ())


def resolved(parameters, *expressions, reserved=frozenset()):
    """Expressions as text, and the parameters, after resolution."""
    resolution = parameters.resolve(frozenset(reserved))

    def rewrite(expr):
        if isinstance(expr, model.Name):
            return resolution.expressions.get(expr.name, expr)
        if isinstance(expr, model.BinOp):
            return model.BinOp(expr.op, rewrite(expr.left), rewrite(expr.right))
        return expr

    bounds = {name: (p.minimum, p.maximum) for name, p in resolution.parameters.items()}
    return [str(rewrite(expr)) for expr in expressions], bounds, resolution


def test_a_sum_of_its_own_is_one_parameter():
    bound = BLOCKS - BM
    parameters = Parameters(facts=(bound - constant(1),))
    texts, bounds, _ = resolved(parameters, parameters.to_model(bound), parameters.to_model(bound - constant(1)))
    assert texts == ["cdiv(K, 64) - bm", "(cdiv(K, 64) - bm - 1)"]
    assert bounds == {"cdiv(K, 64) - bm": (1, None)}


def test_sums_that_share_atoms_stay_related():
    parameters = Parameters()
    texts, bounds, _ = resolved(parameters, parameters.to_model(BLOCKS), parameters.to_model(BLOCKS + BM))
    assert texts == ["cdiv(K, 64)", "(bm + cdiv(K, 64))"]
    assert bounds == {"cdiv(K, 64)": (1, None), "bm": (0, None)}


def test_what_a_condition_guarantees_holds_under_it_only():
    """Two blocks at least where 64 < K, but one may do elsewhere."""
    guarded = symbolic.round_up_divide(K, constant(64), (K - constant(65),))
    for values in ((guarded, BLOCKS), (BLOCKS, guarded)):
        parameters = Parameters()
        for value in (*values, guarded + BM):
            parameters.to_model(value)
        _, bounds, _ = resolved(parameters)
        assert bounds["cdiv(K, 64)"] == (1, None)


def test_a_guarantee_that_separate_parameters_lose_is_reported():
    bound = BLOCKS - BM
    parameters = Parameters(facts=(bound - constant(1),))
    parameters.to_model(bound)
    parameters.to_model(BLOCKS)
    assert parameters.resolve().related == (("bm", "cdiv(K, 64)"),)


def test_a_common_factor_is_kept_outside():
    parameters = Parameters()
    texts, bounds, _ = resolved(parameters, parameters.to_model(BLOCKS.scaled(2)), parameters.to_model(BLOCKS))
    assert texts == ["(cdiv(K, 64) * 2)", "cdiv(K, 64)"]
    assert bounds == {"cdiv(K, 64)": (1, None)}


def test_values_of_one_dimension_are_reported_as_related():
    parameters = Parameters()
    for value in (BLOCKS, symbolic.divide(K, constant(64), ()), M):
        parameters.to_model(value)
    assert parameters.resolve().related == (("K / 64", "cdiv(K, 64)"),)


def test_names_of_the_kernel_are_used_where_they_are_free():
    parameters = Parameters(aliases={"cdiv(K, 64)": "n", "M": "n"})
    _, bounds, _ = resolved(parameters, parameters.to_model(BLOCKS), parameters.to_model(M))
    assert bounds == {"n": (1, None), "M": (1, None)}
    parameters = Parameters(aliases={"cdiv(K, 64)": "k"})
    _, bounds, _ = resolved(parameters, parameters.to_model(BLOCKS), reserved={"k"})
    assert bounds == {"cdiv(K, 64)": (1, None)}


def test_a_value_that_may_be_negative_is_a_trip_count_at_most():
    """A loop that runs −3 times runs no more than one that runs 0 times; anything else would tell them apart."""
    parameters = Parameters()
    low = symbolic.divide(BM - constant(5), constant(2), ())
    _, bounds, _ = resolved(parameters, parameters.trip_count(low))
    assert bounds == {"(bm - 5) / 2": (0, None)}
    with pytest.raises(Untranslatable, match="not provably ≥ 0"):
        parameters.to_model(low)
    with pytest.raises(Untranslatable, match="not provably ≥ 0"):
        parameters.trip_count(low + constant(1))


def test_conditions_on_launch_values_do_not_tie_them_to_the_control_flow():
    parameters = Parameters()
    parameters.to_model(symbolic.compare("<", BM, M, ()), control=False)
    parameters.to_model(symbolic.compare("<", counter("k"), BLOCKS, ()))
    assert parameters.resolve().only_in_conditions == {"bm", "M"}
