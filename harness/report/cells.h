// Single values beside the reference's: the window around a mismatch, and the view of one query
// that `attn-diag show` prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/report/query_row.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// The cells of `tensor` from three before to three behind `index`, along its last axis.
std::string window_text(const QueryRow& row, Tensor tensor,
                        const std::array<std::int64_t, 5>& index, const Style& style);

struct ViewOptions {
  std::optional<std::int64_t> kv_tile;  // nullopt: where the first wrong cell is, else tile 0
  std::int64_t max_cells = 8;           // per tensor
};

// Every tensor of one stage that the row has: along keys, those of the KV tile; along KV tiles and
// splits, those around it; along dims, at that tile or its split. A mismatch is marked. Where there
// is more than max_cells, the ones around the first mismatch.
std::string stage_view(const QueryRow& row, Stage stage, const Geometry& geometry,
                       const ViewOptions& options, const Style& style);

// The first KV tile (lowest tensor in pipeline order, then lowest tile) of the stage at which the
// row is wrong; nullopt where no tensor of it that is wrong has one.
std::optional<std::int64_t> first_wrong_kv_tile(const QueryRow& row, Stage stage,
                                                const Geometry& geometry);

}  // namespace attn_diag::report
