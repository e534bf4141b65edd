// The CUTLASS GEMM kernels of Table 2, one type per configuration.
//
// D = A*B (+ C). A: half, row-major. B: half, column-major. C, D: column-major. f32 accumulation, cluster 1x1x1.
// Everything not named here is CUTLASS' own default, so that the shared storage is CUTLASS' own.
#pragma once

#include <type_traits>

#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"

// The three warp-specialized schedules of CUTLASS on sm_90, with the epilogue that belongs to each.
struct Cooperative {  // persistent; two consumer warpgroups share one tile
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
  using Epilogue = cutlass::epilogue::TmaWarpSpecializedCooperative;
};
struct PingPong {  // persistent; two consumer warpgroups, each with a tile of its own
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
  using Epilogue = cutlass::epilogue::TmaWarpSpecialized;
};
struct NonPersistent {  // one tile per CTA, one consumer warpgroup
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecialized;
  using Epilogue = cutlass::epilogue::TmaWarpSpecialized;
};

// What the epilogue reads and writes. Both need the same bytes of shared memory, but not the same synchronisation: with a
// C of D's width the epilogue stages C and D in the same buffers and writes the first of them without a barrier of the
// consumers in between; without C it has that barrier (sm90_epilogue_tma_warpspecialized.hpp, ReuseSmemC).
struct FloatD {
  using C = void;
  using D = float;
};
struct HalfCD {
  using C = cutlass::half_t;
  using D = cutlass::half_t;
};

template <class Schedule, int TileM, int TileN, int Stages, class Output = FloatD>
struct Gemm {
  static constexpr int kTileM = TileM, kTileN = TileN, kTileK = 64;
  using Element = cutlass::half_t;
  using ElementC = typename Output::C;
  using ElementD = typename Output::D;
  using Tile = cute::Shape<cute::Int<TileM>, cute::Int<TileN>, cute::Int<kTileK>>;
  using Cluster = cute::Shape<cute::_1, cute::_1, cute::_1>;
  // Elements in the 16 bytes that a bulk copy moves at least.
  static constexpr int kAlignment = 16 / sizeof(Element), kAlignmentD = 16 / sizeof(ElementD);

  using CollectiveEpilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float,
      ElementC, cutlass::layout::ColumnMajor, kAlignmentD,
      ElementD, cutlass::layout::ColumnMajor, kAlignmentD,
      typename Schedule::Epilogue>::CollectiveOp;

  using CollectiveMainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp,
      Element, cutlass::layout::RowMajor, kAlignment,
      Element, cutlass::layout::ColumnMajor, kAlignment,
      float, Tile, Cluster,
      cutlass::gemm::collective::StageCount<Stages>,
      typename Schedule::Mainloop>::CollectiveOp;

  using Kernel =
      cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, CollectiveMainloop, CollectiveEpilogue>;
  using SharedStorage = typename Kernel::SharedStorage;
  using TensorStorage = decltype(SharedStorage::tensors);

  // Bytes. The kernel requests kTotal of dynamic shared memory.
  static constexpr unsigned kTotal = sizeof(SharedStorage);
  static constexpr unsigned kMainloop = sizeof(typename CollectiveMainloop::TensorStorage);
  static constexpr unsigned kEpilogue = sizeof(typename CollectiveEpilogue::TensorStorage);
  static constexpr unsigned kTensors = sizeof(TensorStorage);
  static constexpr bool kUnion = std::is_union_v<TensorStorage>;
};
