#include "harness/host/check/block_checker.h"

#include <algorithm>
#include <bit>

#include "harness/host/dynamic_shared.h"

namespace attn_diag::host {

void BlockChecker::begin_launch(const LaunchPlan& plan, std::uintptr_t statics, void* dynamic) {
  x_num_wide = 0;
  x_plan = &plan;
  x_base = plan.library.base;
  x_checker = plan.checker;
  const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const bool has_statics = statics != 0 && !plan.library.is_main_program;
  x_static = FlatShadow();
  x_static.cover(statics + plan.statics.begin, has_statics ? plan.statics.bytes() : 0);
  x_static_arrays.clear();
  if (has_statics) {
    for (StaticArray array : static_arrays(plan.library)) {
      array.begin += statics;
      x_static.allow(array.begin, array.bytes);
      x_static_arrays.push_back(std::move(array));
    }
    // Without a symbol table, all static memory is one array.
    if (x_static_arrays.empty()) x_static.allow(x_static.begin(), x_static.bytes());
  }
  x_dynamic = FlatShadow();
  x_dynamic_begin = address(dynamic);
  x_dynamic_bytes = plan.config.dynamicSmemBytes;
  x_dynamic.cover(x_dynamic_begin - DynamicShared::kZone,
                  x_dynamic_bytes + 2 * DynamicShared::kZone);
  x_dynamic.allow(x_dynamic_begin, x_dynamic_bytes);
  x_static_storage = statics;
}

void BlockChecker::begin_block(std::uint64_t block, unsigned threads) {
  x_block = block;
  x_threads = threads;
  x_returned = {};
  x_copies_at.clear();
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
  for (unsigned t = 0; t < x_threads; ++t) {
    take_easy_reads(t);
    report_held(t);
  }
}

void BlockChecker::new_segment() {
  while (x_num_wide > 0) remove_wide(x_num_wide - 1);  // what was read before is in order
  x_segment = x_checker->new_segment(x_block, x_interval);
  for (WarpClock& warp : x_warps) {
    warp.tick = warp.met.full = warp.ordered.full = 0;
    warp.met.partial = warp.ordered.partial = warp.fenced = false;
  }
  for (unsigned t = 0; t < x_threads; ++t) {
    x_thread[t].fenced_tick = 0;
    restart(t, 0);
  }
}

void BlockChecker::restart(unsigned thread, std::uint32_t tick) {
  take_easy_reads(thread);
  x_thread[thread].epoch = make_epoch(x_segment, thread, tick);
  x_thread[thread].counts = 0;
}

void BlockChecker::shared_pointer(unsigned thread, const char* name, std::uintptr_t at) {
  if (!x_dynamic.contains(at)) return;
  std::vector<SharedPointer>& all = x_thread[thread].pointers;
  const auto same =
      std::find_if(all.begin(), all.end(), [&](const SharedPointer& p) { return p.name == name; });
  if (same == all.end())
    all.push_back({name, at});
  else
    same->at = at;
}

void BlockChecker::block_barrier() {
  x_checker->settle();
  ++x_checker->summary().block_barriers;
  ++x_interval;
  share_clocks();
  new_segment();
}

void BlockChecker::LaneOrder::join(std::uint32_t lanes, std::uint32_t tick) {
  begin_partial();
  std::array<std::uint32_t, 32> joined{};
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
    for (unsigned lane = 0; lane < 32; ++lane)
      joined[lane] =
          std::max(joined[lane], known[static_cast<unsigned>(std::countr_zero(rest))][lane]);
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
    joined[static_cast<unsigned>(std::countr_zero(rest))] = tick;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
    known[static_cast<unsigned>(std::countr_zero(rest))] = joined;
}

void BlockChecker::warp_sync(unsigned number, std::uint32_t lanes, std::uint32_t live,
                             bool orders) {
  x_checker->settle();
  ++x_checker->summary().warp_syncs;
  WarpClock& warp = x_warps[number];
  // Beyond what an epoch can hold, lanes of a warp are taken to be ordered.
  const bool counts = warp.tick + 1 < 1u << kTickBits;
  if (counts) ++warp.tick;
  const auto apply = [&](LaneOrder& order) {
    if (!counts || (live & ~lanes) == 0) {
      order.full = warp.tick + (counts ? 0 : 1);
      order.partial = false;
    } else {
      order.join(lanes, warp.tick);
    }
  };
  apply(warp.met);
  if (orders || !counts)
    apply(warp.ordered);
  else if (warp.fenced)
    order_fenced(number, lanes);
  const unsigned first = number * 32;
  for (unsigned t = first; t < std::min(first + 32, x_threads); ++t) restart(t, warp.tick);
  share_clocks_of_warp(number, lanes);
}

// A fence and then a collective: what a lane fenced, the others come after.
void BlockChecker::order_fenced(unsigned number, std::uint32_t lanes) {
  LaneOrder& order = x_warps[number].ordered;
  for (std::uint32_t from = lanes; from != 0; from &= from - 1) {
    const unsigned writer = number * 32 + static_cast<unsigned>(std::countr_zero(from));
    const std::uint32_t fenced = x_thread[writer].fenced_tick;
    if (fenced == 0) continue;
    order.begin_partial();
    for (std::uint32_t to = lanes; to != 0; to &= to - 1) {
      std::uint32_t& known = order.known[static_cast<unsigned>(std::countr_zero(to))][writer % 32];
      known = std::max(known, fenced);
    }
  }
}

}  // namespace attn_diag::host
