// How a kernel's formula differs from attention's: plain data, one part per step of the pipeline.
// Every field at its default is the right formula. Bugs of different fields can be set together.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace attn_diag::reference {

// S = kappa * softmax_scale * q.k
struct LogitsChange {
  double kappa = 1;
  bool operator==(const LogitsChange&) const = default;
};

// Which keys a query sees.
struct MaskChange {
  std::int32_t first_shift = 0, last_shift = 0;  // added to the first and the last key it sees
  bool operator==(const MaskChange&) const = default;
};

// exp(from - to), by which sums in the frame `from` are carried over to the frame `to`.
enum class Rescale : std::uint8_t { kRight, kMissing, kInverted, kZero };

// From KV tile to KV tile: sum = alpha * sum + tile.
struct RecurrenceChange {
  Rescale alpha_l = Rescale::kRight, alpha_o = Rescale::kRight;
  bool operator==(const RecurrenceChange&) const = default;
};

// The merge of splits.
struct CombineChange {
  std::int32_t scaled_split = -1;  // the split whose weight is multiplied by `factor`; -1: none
  double factor = 1;
  bool operator==(const CombineChange&) const = default;
};

// o = gain * accumulator / l^l_power, lse = m + ln l
struct FinishChange {
  double gain = 1;
  double l_power = 1;
  bool operator==(const FinishChange&) const = default;
};

struct Deviation {
  LogitsChange logits;
  MaskChange mask;
  RecurrenceChange recurrence;
  CombineChange combine;
  FinishChange finish;
  bool operator==(const Deviation&) const = default;
};

}  // namespace attn_diag::reference
