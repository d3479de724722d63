#include "harness/host/check/block_checker.h"

#include <algorithm>
#include <bit>

namespace attn_diag::host {

void BlockChecker::begin_launch(const LaunchPlan& plan, void* statics, void* dynamic) {
  x_plan = &plan;
  x_base = plan.library.base;
  x_checker = plan.checker;
  const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const bool has_statics = statics != nullptr && !plan.library.is_main_program;
  x_static = FlatShadow();
  x_static.cover(address(statics), has_statics ? plan.library.tls_bytes : 0);
  x_static_arrays.clear();
  if (has_statics) {
    for (StaticArray array : static_arrays(plan.library)) {
      array.begin += address(statics);
      x_static.allow(array.begin, array.bytes);
      x_static_arrays.push_back(std::move(array));
    }
    // Without a symbol table all of it is one array.
    if (x_static_arrays.empty()) x_static.allow(x_static.begin(), x_static.bytes());
  }
  x_dynamic = FlatShadow();
  x_dynamic.cover(address(dynamic), plan.config.dynamicSmemBytes);
  x_dynamic.allow(address(dynamic), plan.config.dynamicSmemBytes);
}

void BlockChecker::begin_block(std::uint64_t block, unsigned threads) {
  x_block = block;
  x_threads = threads;
  x_thread.assign(threads, {});
  x_any_clock = false;
  x_block_clock = nullptr;
  x_handovers.clear();
  x_objects.clear();
  x_warps.resize((threads + 31) / 32);
  x_interval = 0;
  new_segment();
  x_first_segment = x_segment;
  ++x_checker->summary().blocks;
}

void BlockChecker::end_block() {
  x_checker->settle();
  for (unsigned t = 0; t < x_threads; ++t) take_easy_reads(t);
}

void BlockChecker::new_segment() {
  x_segment = x_checker->new_segment(x_block, x_interval);
  for (WarpClock& warp : x_warps) {
    warp.tick = warp.full = 0;
    warp.partial = false;
  }
  for (unsigned t = 0; t < x_threads; ++t) restart(t, 0);
}

void BlockChecker::restart(unsigned thread, std::uint32_t tick) {
  take_easy_reads(thread);
  x_thread[thread].epoch = make_epoch(x_segment, thread, tick);
  x_thread[thread].counts = 0;
}

void BlockChecker::block_barrier() {
  x_checker->settle();
  ++x_checker->summary().block_barriers;
  ++x_interval;
  share_clocks();
  new_segment();
}

void BlockChecker::warp_sync(unsigned number, std::uint32_t lanes, std::uint32_t live) {
  x_checker->settle();
  ++x_checker->summary().warp_syncs;
  WarpClock& warp = x_warps[number];
  // Beyond what an epoch can hold, lanes of a warp are taken to be ordered.
  if (warp.tick + 1 < 1u << kTickBits)
    ++warp.tick;
  else
    lanes = live;
  if ((live & ~lanes) == 0) {
    warp.full = warp.tick + (warp.tick + 1 < 1u << kTickBits ? 0 : 1);
    warp.partial = false;
  } else {
    if (!warp.partial)
      for (auto& row : warp.known) row.fill(warp.full);
    warp.partial = true;
    // All learn what any of them knew, and what each of them did.
    std::array<std::uint32_t, 32> joined{};
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
      for (unsigned lane = 0; lane < 32; ++lane)
        joined[lane] =
            std::max(joined[lane], warp.known[static_cast<unsigned>(std::countr_zero(rest))][lane]);
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
      joined[static_cast<unsigned>(std::countr_zero(rest))] = warp.tick;
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
      warp.known[static_cast<unsigned>(std::countr_zero(rest))] = joined;
  }
  const unsigned first = number * 32;
  for (unsigned t = first; t < std::min(first + 32, x_threads); ++t) restart(t, warp.tick);
  share_clocks_of_warp(number, lanes);
}

}  // namespace attn_diag::host
