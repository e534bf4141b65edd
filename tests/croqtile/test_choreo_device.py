"""Where the device header puts the elements of a fragment: its store functions, run on the CPU thread by thread."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from croqtile.runtime import DIRECTORY

# Every lane of a warp notes the addresses and registers of its stmatrix calls; then they are carried out together.
# Element (row, column) of the fragment has the value 256 · row + column + 1.
HARNESS = r"""
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>
#define __device__
#define __forceinline__ inline
struct { unsigned x; } threadIdx;

struct Call { uint32_t address; std::vector<uint32_t> registers; };
std::vector<Call> calls[32];
uint8_t memory[1 << 18];
const uint32_t kGuard = 4096;  // bytes before the tile that must stay untouched

void stmatrix(uint32_t row, uint32_t m0, uint32_t m1, uint32_t m2, uint32_t m3) {
  calls[threadIdx.x % 32].push_back({row, {m0, m1, m2, m3}});
}
void stmatrix(uint32_t row, uint32_t m0, uint32_t m1) { calls[threadIdx.x % 32].push_back({row, {m0, m1}}); }

@CODE@

void carry_out() {
  for (std::size_t call = 0; call < calls[0].size(); ++call)
    for (std::size_t m = 0; m < calls[0][call].registers.size(); ++m)
      for (int lane = 0; lane < 32; ++lane)
        std::memcpy(memory + calls[8 * m + lane / 4][call].address + lane % 4 * 4, &calls[lane][call].registers[m], 4);
  for (auto& list : calls) list.clear();
}

// Byte offset of an element in a tile of `rows` rows: panels, then rows, then 16-byte chunks (ir.SharedBuffer).
long offset(int swizzle, int pitch, int rows, int row, int byte) {
  const int panel = byte / pitch, inside = byte % pitch;
  const int chunk = swizzle ? (inside / 16) ^ (row * pitch / 128 % (swizzle / 16)) : inside / 16;
  return long(panel) * rows * pitch + row * pitch + chunk * 16 + inside % 16;
}

// A fragment of 64 × Columns at (row, column) of a tile of 128 × TileColumns.
template <int Columns, int TileColumns, int Swizzle>
int check(int row, int column) {
  constexpr int kPitch = Swizzle ? Swizzle : 2 * TileColumns;
  std::memset(memory, 0, sizeof memory);
  for (int warp = 0; warp < 4; ++warp) {
    for (int lane = 0; lane < 32; ++lane) {
      threadIdx.x = 32 * warp + lane;
      uint32_t pairs[Columns / 4];
      for (int r = 0; r < Columns / 4; ++r) {
        const int i = 16 * warp + lane / 4 + 8 * (r % 2), j = 8 * (r / 2) + lane % 4 * 2;
        pairs[r] = (256 * i + j + 1) | (256 * i + j + 2) << 16;
      }
      store_pairs<TileLayout<Swizzle, kPitch, 128 * kPitch>>(kGuard, row, 2 * column, pairs);
    }
    carry_out();
  }
  long found = 0, wrong = 0;
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < Columns; ++j) {
      uint16_t value;
      std::memcpy(&value, memory + kGuard + offset(Swizzle, kPitch, 128, row + i, 2 * (column + j)), 2);
      if (value != uint16_t(256 * i + j + 1)) ++wrong;
    }
  }
  for (std::size_t k = 0; k < sizeof memory; k += 2) found += memory[k] || memory[k + 1];
  if (wrong == 0 && found == 64 * Columns) return 0;
  std::printf("%d of %d columns, swizzle %d, at (%d, %d): %ld wrong, %ld written\n", Columns, TileColumns, Swizzle, row,
              column, wrong, found);
  return 1;
}

int main() {
  int bad = 0;
  bad += check<8, 8, 0>(0, 0) + check<16, 16, 0>(64, 0) + check<24, 24, 0>(0, 0) + check<24, 48, 0>(64, 24);
  bad += check<40, 40, 0>(0, 0) + check<120, 128, 0>(0, 8) + check<8, 16, 32>(0, 8) + check<16, 48, 32>(64, 32);
  bad += check<32, 96, 64>(0, 64) + check<56, 64, 64>(64, 8) + check<64, 64, 128>(0, 0) + check<88, 128, 128>(64, 40);
  bad += check<128, 128, 128>(64, 0) + check<128, 256, 128>(64, 128) + check<248, 256, 128>(0, 8);
  return bad;
}
"""


def test_pairs_go_where_the_layout_says(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    header = (DIRECTORY / "choreo_device.cuh").read_text(encoding="utf-8")
    first, last = header.index("template <int Swizzle, int Pitch, int PanelBytes>"), header.index("void store_f16(")
    code = header[first : header.rindex("template <class Layout", first, last)]
    (tmp_path / "store.cpp").write_text(HARNESS.replace("@CODE@", code), encoding="utf-8")
    program = tmp_path / "store"
    build = ["g++", "-std=c++17", "-Wno-unknown-pragmas", str(tmp_path / "store.cpp"), "-o", str(program)]
    subprocess.run(build, check=True, timeout=120)
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
