#include "harness/host/mma_rows.h"

namespace attn_diag::host {

void multiply_rows_avx512(const float* a, const float* b, const float* c, float* d, unsigned m,
                          unsigned n, const MmaOrder& order) {
  all_rows<16>(a, b, c, d, m, n, order);
}

}  // namespace attn_diag::host
