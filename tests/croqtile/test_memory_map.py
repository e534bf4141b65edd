import xml.etree.ElementTree as ET
from dataclasses import replace

import builder as b
import pytest

from croqtile.analyse import analyse
from croqtile.memory_map import draw, lifetimes

SVG = "{http://www.w3.org/2000/svg}"


def boxes(svg):
    """Title → (x, y, width, height) of every buffer's box, in the order of drawing."""
    found = []
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        title, rect = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        if title is not None and rect is not None and title.text is not None:
            found.append((title.text, tuple(float(rect.get(key, "0")) for key in ("x", "y", "width", "height"))))
    return found


def test_a_gemm(golden):
    golden(draw([analyse(b.gemm(stages=2, consumers=3))]))


def test_heights_are_proportional_to_bytes_and_offsets_to_positions():
    apart = boxes(draw([analyse(b.gemm(stages=4))]))[:3]
    by_name = {title.split(":")[0]: box for title, box in apart}
    heights = {name: box[3] + 1.5 for name, box in by_name.items()}
    assert heights["rhs_s"] == pytest.approx(2 * heights["lhs_s"], abs=0.5)
    assert heights["out_s"] == pytest.approx(heights["lhs_s"] / 2, abs=0.5)
    # Address 0 is at the bottom: lhs_s, rhs_s, out_s are declared in this order.
    assert by_name["lhs_s"][1] > by_name["rhs_s"][1] > by_name["out_s"][1]


def test_boxes_that_share_addresses_stand_beside_each_other():
    overlapped = dict(boxes(draw([analyse(b.gemm(stages=4))]))[3:])
    out = next(box for title, box in overlapped.items() if title.startswith("out_s"))
    for title, box in overlapped.items():
        if not title.startswith("out_s"):
            assert box[0] + box[2] <= out[0]


def test_lifetimes_follow_the_program():
    times = lifetimes(analyse(b.gemm()).program)
    assert times == {"lhs_s": (1.0, 2.0), "rhs_s": (1.0, 2.0), "out_s": (2.0, 3.0)}


def test_a_buffer_that_nothing_uses_lives_all_the_time():
    unused = b.buffer("unused", (64, 64))
    assert lifetimes(analyse(b.kernel(buffers=(unused,))).program) == {"unused": (0.0, 3.0)}


def test_the_limit_of_a_block_is_drawn_where_it_is_passed():
    large = tuple(b.buffer(f"b{i}", (128, 512)) for i in range(2))
    assert "limit of a block" in draw([analyse(b.kernel(buffers=large), sala=False)])
    assert "limit of a block" not in draw([analyse(b.gemm())])


def test_names_are_escaped_and_several_kernels_stand_below_each_other():
    analysis = analyse(b.gemm())
    odd = replace(analysis, kernel=replace(analysis.kernel, name="a<b>&c"))
    root = ET.fromstring(draw([analysis, odd]))
    assert any(text.text == "a<b>&c" for text in root.iter(f"{SVG}text"))
    assert int(root.get("height", "0")) == 2 * int(ET.fromstring(draw([analysis])).get("height", "0"))
    ET.fromstring(draw([analyse(b.kernel())]))  # a kernel without shared memory is no error
