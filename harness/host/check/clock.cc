#include "harness/host/check/clock.h"

#include <algorithm>

namespace attn_diag::host {

void BlockView::raise(unsigned thread, std::uint32_t tick) {
  if (thread >= ticks.size()) ticks.resize(thread + 1, 0);
  ticks[thread] = std::max(ticks[thread], tick);
}

void BlockView::join(const BlockView& other) {
  if (other.segment < segment) return;
  if (other.segment > segment) {
    *this = other;
    return;
  }
  if (ticks.size() < other.ticks.size()) ticks.resize(other.ticks.size(), 0);
  for (std::size_t t = 0; t < other.ticks.size(); ++t)
    ticks[t] = std::max(ticks[t], other.ticks[t]);
}

void Clock::join(const Clock& other) {
  for (const auto& [block, view] : other.x_views) x_views[block].join(view);
}

SharedClock joined(const SharedClock& a, const SharedClock& b) {
  if (a == nullptr || a == b) return b;
  if (b == nullptr) return a;
  auto both = std::make_shared<Clock>(*a);
  both->join(*b);
  return both;
}

}  // namespace attn_diag::host
