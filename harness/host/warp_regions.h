// Where lanes of one warp have to wait for each other under lockstep: regions of code that begin before a
// branch and end where its paths meet, as the instrumented build marks them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace attn_diag::host {

// Every function returns the lanes that its call lets go on.
class WarpRegions {
 public:
  using Lanes = std::uint32_t;

  void clear();
  // A lane begins a region, together with those that take the step of this number. `frame`: of the call.
  Lanes enter(unsigned lane, std::uint32_t region, std::uintptr_t frame, std::uint64_t step,
              Lanes together);
  // A lane comes to the end of one. It waits if it is not among those returned, unless it never began
  // the region.
  struct Joined {
    bool waits;
    Lanes released;
  };
  Joined join(unsigned lane, std::uint32_t region, std::uintptr_t frame);
  Lanes exit(unsigned lane) { return leave_above(lane, 0); }
  // Nothing else can run: the lanes that wait in the innermost region.
  Lanes release_innermost();

 private:
  struct Instance {
    std::uint32_t region = 0;
    Lanes inside = 0;   // have begun it, and neither ended nor left it
    Lanes waiting = 0;  // of these, at its end
  };
  struct Begun {
    std::uint32_t instance;
    std::uintptr_t frame;
  };

  // A lane leaves all regions but the first `kept` that it has begun.
  Lanes leave_above(unsigned lane, std::size_t kept);
  Lanes leave_frames_below(unsigned lane, std::uintptr_t frame);
  Lanes release_if_complete(std::uint32_t instance);
  Lanes release(std::uint32_t instance);

  std::vector<Instance> x_instances;
  std::vector<std::uint32_t> x_free;
  std::array<std::vector<Begun>, 32> x_begun;  // by lane
  std::uint64_t x_last_step = 0;               // in which x_last was begun
  std::uint32_t x_last = 0;
};

}  // namespace attn_diag::host
