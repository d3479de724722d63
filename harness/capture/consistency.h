// What must hold before cells are compared. Throws Error saying what does not.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"

namespace attn_diag {

// Shape of a tensor over a capture's region, and where it starts.
std::vector<std::int64_t> recorded_shape(Tensor t, const Capture& capture);
std::vector<std::int64_t> recorded_origin(Tensor t, const Capture& capture);

// Shape, origin and bytes of a tensor are those its capture's problem, geometry and region ask for.
void check_tensor(const Capture& capture, const TensorData& data);

// Whether the reference gives the same for both: problem, geometry, declared arithmetic, q, k and v.
bool same_case(const Capture& a, const Capture& b);

// Same problem, same region, same tensors, and the same cut into tiles where a tensor depends on it.
// `actual` and `expected` name the two in messages.
void check_comparable(const Capture& actual, const Capture& expected,
                      const std::string& actual_name = "the first capture",
                      const std::string& expected_name = "the second");

}  // namespace attn_diag
