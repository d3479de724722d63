// F11, F15 to F17, F21, F29, F31: m, l and P.
#include <algorithm>
#include <vector>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

void lanes(const Case& c, Variants& out) {
  const std::int32_t block_n = c.geometry().tile.block_n;
  const auto add = [&](LaneMap map, std::int32_t num_lanes, const char* what) {
    if (num_lanes > block_n || (map == LaneMap::kQuad && block_n < 8)) return;
    for (const bool with_o : {false, true})
      for (const bool keep : {false, true}) {
        if (keep && longest_split(c) == 1) continue;
        out.with(
            [&](Deviation& d) {
              d.softmax.lanes = map;
              d.softmax.num_lanes = num_lanes;
              d.softmax.lanes_keep_max = keep;
              d.softmax.lanes_o = with_o;
            },
            {named("lane of a key", static_cast<double>(map), what), number("lanes", num_lanes),
             named("max over", keep, keep ? "the split" : "the tile"),
             named("of", with_o, with_o ? "l and o" : "l")});
      }
  };
  for (const std::int32_t n : {2, 4, 8, 16, 32}) {
    add(LaneMap::kInterleaved, n, "j % lanes");
    if (block_n % n == 0) add(LaneMap::kBlocked, n, "j / (kBlockN / lanes)");
  }
  add(LaneMap::kQuad, 4, "j % 8 / 2");
}

void mixed_rows(const Case& c, Variants& out) {
  std::vector<std::int32_t> groups{2, 4, 8, 16, 32};
  const std::int32_t block_m = c.geometry().tile.block_m;
  if (std::find(groups.begin(), groups.end(), block_m) == groups.end()) groups.push_back(block_m);
  for (const std::int32_t rows : groups) {
    if (rows > c.problem().seqlen_q || rows < 2) continue;
    for (const bool max_too : {true, false})
      out.with(
          [&](Deviation& d) {
            d.softmax.mixed_rows = rows;
            d.softmax.mixed_max = max_too;
          },
          {number("rows", rows), named("of", max_too, max_too ? "m and l" : "l")});
  }
}

void narrow_probs(const Case& c, Variants& out) {
  const DType declared = c.arithmetic().probs;
  const auto add = [&](Narrow type, const char* name) {
    for (const bool sum : {false, true})
      out.with(
          [&](Deviation& d) {
            d.softmax.probs = type;
            d.softmax.sum_of_narrow = sum;
          },
          {named("type", static_cast<double>(type), name),
           named("in", sum, sum ? "l and P V" : "P V")});
  };
  // A type that is declared is part of the bound already.
  if (declared != DType::kFp16 && declared != DType::kBf16) add(Narrow::kFp16, "fp16");
  if (declared != DType::kBf16) add(Narrow::kBf16, "bf16");
  if (declared == DType::kFp32) add(Narrow::kTf32, "tf32");
  add(Narrow::kFp8E4m3, "fp8 e4m3");
}

const Entry kEntries[] = {
    {{.id = "max-floor",
      .statement = "the row max begins with a number instead of -inf, or is clamped",
      .formula = "F11",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"c"},
      .citation = "flash-attention#2082, flashinfer#4267",
      .remedy = "the initial value of the max"},
     [](const Case&, Variants& out) {
       for (const double floor : {0.0, 10.0, -5e4})
         out.with([&](Deviation& d) { d.softmax.m_floor = floor; }, {number("c", floor)});
     }},
    {{.id = "exp-linear",
      .statement = "exp is 2^n (1 + f): the fraction enters linearly",
      .formula = "F17",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {},
      .citation = "",
      .remedy = "the polynomial of the approximate exp2"},
     [](const Case&, Variants& out) {
       out.with([](Deviation& d) { d.softmax.exp = ExpKind::kLinear; });
     }},
    {{.id = "lanes-not-rescaled",
      .statement = "sums that lanes or warps keep relative to their own max are added as they are",
      .formula = "F15",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"lane of a key", "lanes", "max over", "of"},
      .citation = "KarhouTam/cuda-kernels#3",
      .remedy = "the merge over lanes: reduce the max first, rescale by exp(m_lane - m), then add",
      .needs_tiles = true},
     lanes},
    {{.id = "rows-mixed",
      .statement = "a reduction over lanes runs over several rows: each lane owns another one",
      .formula = "F31",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"rows", "of"},
      .citation = "",
      .remedy = "the width or mask of the shuffles: only the lanes that share a row"},
     mixed_rows},
    {{.id = "probs-narrow",
      .statement = "P is rounded to a narrower type than declared",
      .formula = "F16, F21",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"type", "in"},
      .citation = "flash-attention#2721, flashinfer#5020",
      .remedy = "the type of the P tile, and whether l sums P before or after it is rounded"},
     narrow_probs},
    {{.id = "mask-missing-in-sum",
      .statement = "masked keys count in l, not in P V",
      .formula = "F7",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {},
      .citation = "",
      .remedy = "the order of mask, exp and sum"},
     [](const Case& c, Variants& out) {
       if (c.problem().mask.kind != MaskKind::kNone)
         out.with([](Deviation& d) { d.softmax.l_counts_masked = true; });
     }},
    {{.id = "mask-missing-in-product",
      .statement = "masked keys count in P V, not in l",
      .formula = "F7",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {},
      .citation = "",
      .remedy = "whether P is masked where it is stored for the second product"},
     [](const Case& c, Variants& out) {
       if (c.problem().mask.kind != MaskKind::kNone)
         out.with([](Deviation& d) { d.softmax.o_counts_masked = true; });
     }},
};

}  // namespace

std::span<const Entry> softmax_entries() { return kEntries; }

}  // namespace attn_diag::reference
