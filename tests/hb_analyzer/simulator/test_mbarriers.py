"""mbarriers, against what the PTX manual says of them."""

from __future__ import annotations

import pytest

from hb_analyzer.simulator.mbarriers import Mbarrier


def test_a_phase_completes_with_its_last_arrival() -> None:
    barrier = Mbarrier(2)
    assert not barrier.arrive() and barrier.arrive()
    assert barrier.state() == (1, 2, 0)


def test_a_phase_waits_for_its_bytes() -> None:
    barrier = Mbarrier(1)
    barrier.expect(128)
    assert not barrier.arrive()
    assert not barrier.passes(0)
    assert not barrier.land(100) and barrier.land(28)
    assert barrier.passes(0)


def test_bytes_that_land_before_the_arrival_do_not_complete_it() -> None:
    barrier = Mbarrier(1)
    barrier.expect(128)
    assert not barrier.land(128)
    assert barrier.arrive()


def test_a_wait_tests_the_parity() -> None:
    barrier = Mbarrier(1)
    assert not barrier.passes(0)
    barrier.arrive()
    assert barrier.passes(0) and not barrier.passes(1)
    barrier.arrive()
    assert barrier.passes(1) and not barrier.passes(0)  # a waiter for phase 0 has been lapped
    barrier.arrive()
    assert barrier.passes(0)


def test_an_arrival_too_many_has_no_meaning() -> None:
    barrier = Mbarrier(1)
    barrier.expect(1)
    barrier.arrive()
    with pytest.raises(OverflowError):
        barrier.arrive()


def test_initial_settings_are_completed_phases() -> None:
    assert Mbarrier(3, completed=1).passes(0)
