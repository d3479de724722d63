// The values of flags: text to numbers and names. Everything throws Error that names the flag, what
// it takes and what it was given.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"
#include "attn_diag/kernels/stage.h"

namespace attn_diag::cli {

inline constexpr std::int64_t kMaxSize = 1 << 24;

// In the order of the enumerations.
inline constexpr std::array<std::string_view, 3> kDTypeNames = {"fp16", "bf16", "fp32"};
inline constexpr std::array<std::string_view, 2> kLayoutNames = {"BHSD", "BSHD"};
inline constexpr std::array<std::string_view, 3> kFormatNames = {"text", "gcc", "github"};

// Pieces between commas; an empty piece is an error. "window:L,R" stays one piece.
std::vector<std::string> split_list(std::string_view flag, std::string_view text);

std::int64_t parse_int(std::string_view flag, std::string_view text, std::int64_t low,
                       std::int64_t high);
double parse_real(std::string_view flag, std::string_view text,
                  double low = -std::numeric_limits<double>::infinity());
std::uint64_t parse_seed(std::string_view flag, std::string_view text);

DType parse_dtype(std::string_view text);
Layout parse_layout(std::string_view text);
// What stdout shows: one of kFormatNames.
void parse_format(std::string_view text);
TileShape parse_tile(std::string_view text);
Gate parse_gate(std::string_view text);
Stage parse_stage(std::string_view text);
// Plain "causal" is taken where Sq = Sk only.
Mask parse_mask(std::string_view text, std::int32_t seqlen_q, std::int32_t seqlen_k);

// "7" or "3:9", half open, within [0, extent).
struct Interval {
  std::int64_t begin = 0, end = 0;
};
Interval parse_interval(std::string_view flag, std::string_view text, std::int64_t extent);

// N of "sample:N"; nullopt where it is no sample.
std::optional<std::int64_t> parse_sample(std::string_view flag, std::string_view text);

}  // namespace attn_diag::cli
