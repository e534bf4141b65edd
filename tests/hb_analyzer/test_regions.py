"""Atoms of buffers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hb_analyzer.model import WHOLE, Buffer, Region
from hb_analyzer.regions import atoms_of


def test_one_atom_without_boxes() -> None:
    atoms = atoms_of(Buffer("A", 64, shape=(8, 8)), [WHOLE, None])
    assert atoms.count == 1
    assert atoms.footprints[WHOLE] == (1, 1)
    assert atoms.footprints[None] == (0, 1), "an unknown region covers nothing and needs everything"


def test_halves_cover_the_tile() -> None:
    top, bottom, left = ((0, 4), (0, 8)), ((4, 8), (0, 8)), ((0, 8), (0, 2))
    atoms = atoms_of(Buffer("A", 64, shape=(8, 8)), [top, bottom, left, WHOLE])
    cover = atoms.footprints[top].must | atoms.footprints[bottom].must
    assert cover == atoms.footprints[WHOLE].must
    assert not atoms.footprints[top].must & atoms.footprints[bottom].must
    assert atoms.footprints[left].must & atoms.footprints[top].must
    assert atoms.count == 4


def test_a_box_of_another_rank_is_unknown() -> None:
    box = ((0, 4),)
    assert atoms_of(Buffer("A", 64, shape=(8, 8)), [box]).footprints[box] == (0, 1)
    assert atoms_of(Buffer("A", 64), [box]).footprints[box] == (0, 1)


def test_too_many_cells_are_unknown_regions() -> None:
    boxes = [((i, i + 1), (j, j + 1)) for i in range(150) for j in range(150) if i == j]
    atoms = atoms_of(Buffer("A", 64, shape=(150, 150)), boxes)
    assert atoms.count == 1
    assert atoms.footprints[boxes[0]] == (0, 1)


intervals = st.tuples(st.integers(0, 6), st.integers(0, 6))


@given(st.lists(st.tuples(intervals, intervals), min_size=1, max_size=6))
def test_atoms_intersect_as_boxes_do(boxes: list[tuple[tuple[int, int], tuple[int, int]]]) -> None:
    atoms = atoms_of(Buffer("A", 64, shape=(6, 6)), [*boxes, WHOLE])

    def cells(region: Region) -> set[tuple[int, int]]:
        assert region is not None
        (a, b), (c, d) = region
        return {(x, y) for x in range(a, b) for y in range(c, d)}

    for one in boxes:
        for two in boxes:
            common = atoms.footprints[one].must & atoms.footprints[two].must
            assert bool(common) == bool(cells(one) & cells(two))
    union = 0
    covered: set[tuple[int, int]] = set()
    for box in boxes:
        union |= atoms.footprints[box].must
        covered |= cells(box)
    assert (union == atoms.footprints[WHOLE].must) == (len(covered) == 36)
