// PTX's mbarrier: arrivals, bytes, phases, and who waits for them.
#pragma once

#include "harness/host/async_copies.h"
#include "harness/host/block_context.h"

namespace attn_diag::host {

// What somebody does to an mbarrier.
struct MbarrierChange {
  unsigned arrivals;
  bool drop;           // from the next phases too
  std::int64_t bytes;  // announced; negative: copied
};

class __attribute__((visibility("hidden"))) Mbarriers {
 public:
  // `copies`: those that arrivals can follow.
  Mbarriers(BlockContext& block, CopiesInFlight& copies);

  void init(std::uint64_t* barrier, unsigned count, const char* file, int line, std::uintptr_t pc);
  void inval(std::uint64_t* barrier, const char* file, int line, std::uintptr_t pc);
  // Returns the object as it was.
  std::uint64_t change(std::uint64_t* barrier, const MbarrierChange& change, const char* file,
                       int line, std::uintptr_t pc, std::uintptr_t frame);
  // Whether the barrier has left the phase of this parity.
  bool test_wait(std::uint64_t* barrier, bool phase, const char* file, int line, std::uintptr_t pc,
                 std::uintptr_t frame);
  void arrive_after_copies(std::uint64_t* barrier, bool noinc, const char* file, int line,
                           std::uintptr_t pc);

 private:
  static std::string state_text(const Fiber& fiber);
  std::uint64_t apply(std::uint64_t* barrier, const MbarrierChange& change, const char* file,
                      int line);
  void land_copies_for(std::uint64_t* barrier, const char* file, int line);
  void check_memory(const std::uint64_t* barrier, const char* file, int line);
  void check(const std::uint64_t* barrier, const char* file, int line);
  void record_misuse(const std::string& does, const std::string& what, const char* advice,
                     const char* file, int line);

  BlockContext& x_block;
  CopiesInFlight& x_copies;
};

}  // namespace attn_diag::host
