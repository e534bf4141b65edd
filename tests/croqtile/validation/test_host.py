"""Reading the host side of generated files."""

from __future__ import annotations

import pytest

from croqtile.validation.host import TensorMap, read_host
from croqtile.validation.ptx import PtxError
from tests.croqtile.validation import kernels


def test_maps_parameters_and_sizes() -> None:
    host = read_host(kernels.cuda(), kernels.FUNCTION)
    assert host.parameters == ("lhs_map", "rhs_map", "output_map", "M", "K", "N")
    assert host.maps["rhs_map"] == TensorMap("rhs_map", 2, (64, 128), 128) and host.maps["rhs_map"].bytes == 16384
    assert host.block == {"bm": "x", "bn": "y"}
    assert host.threads == 384 and host.dynamic_bytes == 98304 + 1024


def test_four_dimensions() -> None:
    path = kernels.ROOT / "kernels" / "conv" / "conv2d_fprop_ws_1p1c.co"
    host = read_host(kernels.cuda(path), "__choreo_device_conv2d")
    assert host.maps["input_map"].box == (64, 64, 1, 1) and host.maps["input_map"].bytes == 8192


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "lhs_map, rhs_map, output_map, static",
            "rhs_map, lhs_map, output_map, static",
            "parameter 0 of .* is lhs_map",
        ),
        ("__choreo_device_matmul, 99328, dev", "__choreo_device_matmul, 99320, dev", "are allowed"),
        ("enqueue(site_", "launch(site_", "neither defines nor launches"),
    ],
)
def test_what_does_not_fit_together(old: str, new: str, why: str) -> None:
    text = kernels.cuda()
    assert text.count(old) == 1
    with pytest.raises(PtxError, match=why):
        read_host(text.replace(old, new), kernels.FUNCTION)
