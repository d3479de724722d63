// What a LaunchScope that checks keeps from launch to launch: memory, its shadow, findings.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "attn_diag/harness/host/check.h"
#include "harness/host/check/array_shape.h"
#include "harness/host/check/clock.h"
#include "harness/host/check/shadow.h"
#include "harness/host/launch_plan.h"

namespace attn_diag::host {

struct WatchedMemory {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::string name;
  bool freed = false;
  // For variables. Bytes behind it that nobody may use; is_constant: it cannot be written.
  std::size_t guard_bytes = 0;
  bool is_constant = false;
  ArrayShape shape;
  // Of memory that nobody has named: "device memory #3"; and what the launched kernel calls its parts, by their begin.
  std::string number;
  std::map<std::uintptr_t, std::string> parts;

  struct Part {
    std::string name;
    std::uintptr_t begin = 0, end = 0;
  };
  // That in which the byte is, or the nearest.
  Part part_of(std::uintptr_t at) const;
};

// An access as it was seen; lines are looked up later.
struct SeenAccess {
  std::uint64_t block = 0;
  std::uint32_t thread = 0, interval = 0, pc = 0;
  unsigned bytes = 0;
  bool write = false, atomic = false, is_volatile = false, async = false, tile = false;
};

// What lay where on a thread's stack.
struct StackWord {
  std::uintptr_t at = 0, value = 0;
};

// Threads of a block that had returned before a barrier of it.
struct EarlyReturn {
  unsigned count = 0;  // 0: there were none
  const char* file = nullptr;
  int line = 0;
};

struct SeenFinding {
  CheckKind kind = CheckKind::kRace;
  Severity severity = Severity::kError;
  std::uint32_t launch = 0;
  const char* space = "";
  std::string array;
  std::int64_t offset = 0;
  ArrayShape shape;     // of the array
  std::string element;  // of an index: "sQ[3][32]"
  SeenAccess access, other;
  bool has_other = false;
  std::uint64_t count = 0;
  std::string message, advice;
  EarlyReturn returned;
  std::optional<SeenAccess> wait;                       // see CheckFinding::wait
  bool wants_barrier = false;                           // between the two accesses
  std::uintptr_t at = 0;                                // of global memory
  std::int64_t written_below = -1, written_above = -1;  // see CheckFinding
  std::optional<std::uint32_t> writer;                  // program counter
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
  // Allocated by whoever launches: "device memory #3", until a kernel names it.
  void register_allocation(std::uintptr_t begin, std::size_t bytes, const char* what,
                           bool initialised);
  // The launched kernel's name for allocated memory from there on; the first that it has.
  void name_memory(const char* name, std::uintptr_t begin);
  void mark_freed(std::uintptr_t begin);
  void mark_initialised(std::uintptr_t begin, std::size_t bytes);
  ShadowPage& global_page(std::uintptr_t at) { return x_global.page(at); }
  SparseShadow& global() { return x_global; }
  // The array that has the byte, or else the nearest one; null: there are none.
  const WatchedMemory* nearest(std::uintptr_t at) const;
  // Whether it is behind a variable, where nothing is that anybody may use.
  bool is_guard(std::uintptr_t at) const;
  // Whether an address in no array may be in a constant that the compiler made: these lie among the variables
  // that cannot be written.
  bool may_be_unnamed_constant(std::uintptr_t at) const;
  // Calls act(name, begin, bytes) for the arrays on either side.
  template <class Act>
  void neighbours(std::uintptr_t at, const Act& act) const {
    const auto after = x_memory.upper_bound(at);
    if (after != x_memory.end()) act(after->second.name, after->first, after->second.bytes);
    if (after == x_memory.begin()) return;
    const WatchedMemory& before = std::prev(after)->second;
    act(before.name, before.begin, before.bytes);
  }
  // Memory that kernels use without having allocated it: of loaded files, of stacks.
  bool is_other_memory(std::uintptr_t at) const;
  void ignore(std::uintptr_t begin, std::size_t bytes) { x_ignored.push_back({begin, bytes}); }

  // Counts it if one of the same kind at the same program counters was seen before.
  void add(const SeenFinding& finding);
  // Two plain stores that nothing orders. Whether their values differ shows when the later one, which is about to
  // happen, has happened.
  void settle_later(const SeenFinding& finding, std::uintptr_t at, std::size_t bytes);
  void settle() {
    if (!x_unsettled.empty()) [[unlikely]]
      settle_now();
  }
  // A call at a place of the launch's library whose accesses are not seen.
  void unseen(const std::string& what, std::uintptr_t pc);
  // What may be return addresses of the thread by which a block was ended, innermost first; after the launch,
  // add_launch_finding() says what ended it.
  void note_end(const std::vector<StackWord>& returns);
  // The same of another thread that waits at that line; after note_end(). Kept of a few that wait in different places.
  void note_end_of_other(const std::string& file, int line, const std::vector<StackWord>& returns);
  void add_launch_finding(const LaunchFinding& finding);

  Handovers& handovers() { return x_handovers; }  // at addresses of global memory
  CheckSummary& summary() { return x_summary; }
  CheckReport report() const;

 private:
  using Returns = std::vector<StackWord>;  // values: offsets into the library
  struct Unsettled;
  void settle_now();
  Returns offsets_of(const Returns& returns) const;
  void note_written(SeenFinding& finding);
  static void note_values(Unsettled& store);

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
    std::string array;  // one line of a function may touch several
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
  std::set<std::uintptr_t> x_libraries;              // whose variables are among it
  struct Stretch {
    std::uintptr_t begin;
    std::size_t bytes;
  };
  std::vector<Stretch> x_ignored;  // during this launch
  std::vector<SeenFinding> x_findings;
  std::unordered_map<Key, std::size_t, HashKey> x_found;  // indices into them
  std::array<int, kNumCheckKinds> x_kept{};
  struct EndedLaunch {
    CheckFinding finding;          // others_wait: without calls
    std::vector<Returns> returns;  // of the thread that ended it, and of the others that wait
    std::uint32_t launch;
  };
  std::vector<EndedLaunch> x_ended_launches;
  std::vector<Returns> x_ended_at;
  std::vector<SourcePlace> x_others_wait;
  CheckSummary x_summary;
  Handovers x_handovers;
  int x_allocated = 0;

  struct Unsettled {
    SeenFinding finding;
    std::uintptr_t at;
    std::vector<std::byte> before;
  };
  std::vector<Unsettled> x_unsettled;  // of the access that comes next
  struct Unseen {
    std::uint32_t launch, pc;
    auto operator<=>(const Unseen&) const = default;
  };
  std::map<Unseen, std::string> x_unseen;
};

}  // namespace attn_diag::host
