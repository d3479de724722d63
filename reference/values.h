// The values of every stage tensor for one block of query rows.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "attn_diag/kernels/stage.h"
#include "reference/mask.h"
#include "reference/plan.h"
#include "reference/product.h"

namespace attn_diag::reference {

// k and v of one kv head, widened and packed for multiply().
struct KvHead {
  Panels k;  // (head_dim, seqlen_k)
  Panels v;  // (seqlen_k, head_dim_v)
};
KvHead widen_kv_head(const Plan& plan, std::int32_t batch, std::int32_t kv_head);

// One block's tensors, dense row-major [rows][inner0][inner1] as in RowBlock; memory is reused from
// block to block. Tensors of stages that the plan leaves out are not filled.
struct BlockValues {
  std::int32_t batch = 0, head = 0, rows = 0;
  const std::int32_t* queries = nullptr;  // (rows)
  std::vector<KeyRange> keys;             // (rows): what each row may see
  KeyRange any_keys;                      // the run of keys that covers them
  std::vector<double> q;                  // (rows, head_dim)
  std::vector<double> scaled_q;           // (rows, head_dim): softmax_scale * q
  std::array<std::vector<double>, kNumTensors> tensor;
  std::vector<double> last_m;  // (rows): row max over all keys
  std::vector<double> last_l;  // (rows): row sum in that frame

  double* operator[](Tensor t) { return tensor[static_cast<std::size_t>(t)].data(); }
  const double* operator[](Tensor t) const { return tensor[static_cast<std::size_t>(t)].data(); }
};

// Fills `block` for the `rows` queries of (batch, head).
void compute_values(const Plan& plan, const KvHead& kv, std::int32_t batch, std::int32_t head,
                    const std::int32_t* queries, std::int32_t rows, BlockValues& block);

}  // namespace attn_diag::reference
