// How every report writes numbers, coordinates, problems and command lines.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/lines.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"
#include "attn_diag/kernels/stage.h"
#include "harness/base/printable.h"

namespace attn_diag::report {

enum class Colour { kNone, kRed, kGreen, kYellow, kBold, kDim };

// What the place the text goes to can show.
struct Style {
  bool colour = false;
  bool unicode = false;
  int width = 100;  // columns
};
std::string paint(const Style& style, Colour colour, std::string_view text);

std::string number(double x);          // 4 significant digits, "nan", "-inf"
std::string exact(double x);           // enough digits to tell neighbouring fp32 values apart
std::string ratio(double x);           // err/bound: "0.31x", "5.8e+05x", "infx"
std::string count(std::int64_t n);     // 1,234,567
std::string bytes(double n);           // "4.0 TiB"
std::string duration(double seconds);  // "0.3 s", "12 s", "3.5 min", "2.1 h", "4.0 days"
std::string percent(std::int64_t part, std::int64_t whole);
std::string plural(std::int64_t n, std::string_view noun);  // "1 case", "2 cases"
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// A function as the debug information names it, without its parameters and template arguments:
// "void ns::fa1<64>(float*) [clone .cold]" is "ns::fa1<...>", what is within it "a lambda in ns::fa1<...>".
std::string short_function_name(std::string name);

// As --mask takes it: "causal" where the alignment does not matter.
std::string mask_text(const Problem& problem);
// "B=1 H=2 S=128 D=64 fp16 causal BHSD"
std::string problem_text(const Problem& problem);
// "64x64 tiles, 2 splits"
std::string geometry_text(const Geometry& geometry);

// "(0, 1, 5, 3)"
std::string index_text(Tensor tensor, const std::array<std::int64_t, 5>& index);
// "head 0, query 5, query tile 0, kv tile 1, dim 3": what the tensor's axes say about the index.
// The batch is named only where there is more than one.
std::string place_text(Tensor tensor, const std::array<std::int64_t, 5>& index,
                       const Problem& problem, const Geometry& geometry);

// "softmax.cu:41"
std::string place_text(const LinePlace& place);

// "0-3, 7, 9-12": sorted, distinct values as ranges, cut after max_ranges with "...".
std::string ranges(const std::vector<std::int64_t>& sorted, int max_ranges = 8);

// Breaks text at spaces so that no line is wider than `width`; lines after the first are indented.
std::string wrap(std::string_view text, int width, int indent);
// A unified diff, its lines coloured.
std::string diff_text(const std::string& diff, const Style& style);
// Columns a UTF-8 string takes, escape sequences not counted.
int display_width(std::string_view text);

}  // namespace attn_diag::report
