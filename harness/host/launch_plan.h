// What all workers of one launch share, read-only but for the turns.
#pragma once

#include <cstdint>
#include <string>

#include "attn_diag/harness/host/executor.h"
#include "attn_diag_host/launch.h"
#include "harness/host/block_turns.h"
#include "harness/host/kernel_library.h"
#include "harness/host/mma_arithmetic.h"
#include "harness/host/static_layout.h"

namespace attn_diag::host {

class Checker;
class ValueRecorder;

struct LaunchPlan {
  cudaLaunchConfig_t config;
  KernelCall call;
  KernelLibrary library;  // the shared object the kernel lies in
  StaticLayout statics;   // its static shared memory
  Schedule schedule;
  MmaOrder mma_order;
  AsyncCopies async_copies = AsyncCopies::kLate;
  std::uint64_t step_limit = 0;
  double silent_seconds = 0;
  std::uint8_t shared_fill = 0xFF;
  std::uint64_t blocks = 0;
  std::string kernel_name;          // for the flight record, where that is wanted
  Checker* checker = nullptr;       // null: loads and stores are not looked at
  ValueRecorder* values = nullptr;  // null: nobody asks where numbers come from
  BlockTurns* turns = nullptr;
};

}  // namespace attn_diag::host
