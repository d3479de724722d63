// Where things are in a dump and how they are stored: what the writer and the reader must agree on.
// docs/schema.md describes it for users.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "harness/dump/hdf5_handle.h"

namespace attn_diag {

// "/stages", "/reference", "/bound" or "/uncertainty".
inline constexpr std::string_view kStagesGroup = "/stages";
inline constexpr std::string_view kReferenceGroup = "/reference";
inline constexpr std::string_view kBoundGroup = "/bound";
inline constexpr std::string_view kUncertaintyGroup = "/uncertainty";
// What a trace found about the line: a group with one attribute.
inline constexpr std::string_view kLinesGroup = "/lines";
inline constexpr const char* kLinesAttribute = "json";
std::string tensor_path(std::string_view tree, Tensor t);  // "/stages/qk/S"

// q, k and v: whole, in the problem's dtype and layout.
struct InputLayout {
  const char* name;
  std::array<const char*, 4> axes;  // names of the scales, in memory order
  std::array<std::int64_t, 4> shape;
};
std::array<InputLayout, 3> input_layouts(const Problem& problem);

}  // namespace attn_diag
