// What a LaunchScope that checks keeps from launch to launch: memory, its shadow, findings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "attn_diag/harness/host/check.h"
#include "harness/host/check/clock.h"
#include "harness/host/check/shadow.h"
#include "harness/host/launch_plan.h"

namespace attn_diag::host {

struct WatchedMemory {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::string name;
  bool freed = false;
};

// An access as it was seen; lines are looked up later.
struct SeenAccess {
  std::uint64_t block = 0;
  std::uint32_t thread = 0, interval = 0, pc = 0;
  unsigned bytes = 0;
  bool write = false, atomic = false, is_volatile = false, async = false;
};

struct SeenFinding {
  CheckKind kind = CheckKind::kRace;
  Severity severity = Severity::kError;
  std::uint32_t launch = 0;
  const char* space = "";
  std::string array;
  std::int64_t offset = 0;
  SeenAccess access, other;
  bool has_other = false;
  std::uint64_t count = 0;
  std::string message, advice;
};

class Checker {
 public:
  explicit Checker(const CheckOptions& options);

  void begin_launch(const LaunchPlan& plan);
  std::uint32_t first_segment() const { return x_first_segment; }
  // A new barrier interval of a block.
  std::uint32_t new_segment(std::uint64_t block, std::uint32_t interval);
  std::uint64_t block_of(std::uint32_t segment) const {
    return x_segments[segment - x_first_segment].block;
  }
  std::uint32_t interval_of(std::uint32_t segment) const {
    return x_segments[segment - x_first_segment].interval;
  }

  // Memory of the host executor's device. Bytes that are not initialised are found when read.
  void register_memory(std::uintptr_t begin, std::size_t bytes, const std::string& name,
                       bool initialised);
  std::string numbered(const std::string& what);  // "device memory #3"
  void mark_freed(std::uintptr_t begin);
  void mark_initialised(std::uintptr_t begin, std::size_t bytes);
  ShadowPage& global_page(std::uintptr_t at) { return x_global.page(at); }
  SparseShadow& global() { return x_global; }
  // The array that has the byte, or else the nearest one; null: there are none.
  const WatchedMemory* nearest(std::uintptr_t at) const;
  // Memory that kernels use without having allocated it: of loaded files, of stacks.
  bool is_other_memory(std::uintptr_t at) const;
  void ignore(std::uintptr_t begin, std::size_t bytes) { x_ignored.push_back({begin, bytes}); }

  // Counts it if one of the same kind at the same program counters was seen before.
  void add(const SeenFinding& finding);
  // Two plain stores that nothing orders: whether their values differ shows once the later one, which is
  // about to happen, has.
  void settle_later(const SeenFinding& finding, std::uintptr_t at, std::size_t bytes);
  void settle() {
    if (x_unsettled_bytes != 0) [[unlikely]]
      settle_now();
  }
  // After a launch: what ended it.
  void add_launch_finding(const Finding& finding);

  Handovers& handovers() { return x_handovers; }  // at addresses of global memory
  CheckSummary& summary() { return x_summary; }
  CheckReport report() const;

 private:
  void settle_now();

  struct Segment {
    std::uint64_t block;
    std::uint32_t interval;
  };
  struct LaunchSeen {
    std::string kernel, library;
    std::uintptr_t base = 0;
    dim3 grid, block;
  };
  struct Key {
    std::uint64_t pcs;
    std::uint32_t launch;
    CheckKind kind;
    Severity severity;
    bool operator==(const Key&) const = default;
  };
  struct HashKey {
    std::size_t operator()(const Key& k) const {
      return static_cast<std::size_t>((k.pcs ^ k.launch) * 0x9E3779B97F4A7C15u) +
             static_cast<std::size_t>(k.kind) * 8 + static_cast<std::size_t>(k.severity);
    }
  };

  CheckOptions x_options;
  std::vector<LaunchSeen> x_launches;
  std::vector<Segment> x_segments;  // of the launch
  std::uint32_t x_first_segment = 2;
  SparseShadow x_global;
  std::map<std::uintptr_t, WatchedMemory> x_memory;  // by begin
  struct Stretch {
    std::uintptr_t begin;
    std::size_t bytes;
  };
  std::vector<Stretch> x_ignored;  // during this launch
  std::vector<SeenFinding> x_findings;
  std::unordered_map<Key, std::size_t, HashKey> x_found;  // indices into them
  std::array<int, kNumCheckKinds> x_kept{};
  std::vector<CheckFinding> x_launch_findings;
  CheckSummary x_summary;
  Handovers x_handovers;
  int x_allocated = 0;

  SeenFinding x_unsettled;
  std::uintptr_t x_unsettled_at = 0;
  std::size_t x_unsettled_bytes = 0;  // 0: none
  std::array<std::byte, 16> x_unsettled_before{};
};

}  // namespace attn_diag::host
