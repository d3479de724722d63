// Captures made without a kernel, for tests.
#pragma once

#include <optional>
#include <vector>

#include "attn_diag/harness/capture.h"

namespace attn_diag::testing {

// Problem, geometry, zero inputs, the whole problem as region, no tensors.
Capture empty_capture(const Problem& problem, const Geometry& geometry);

// Sets a tensor over the capture's region; values in row-major order, rounded to dtype.
void put(Capture& capture, Tensor t, DType dtype, const std::vector<double>& values);

// Random inputs and every tensor the geometry has, with the reference's values: o in the problem's
// dtype, the others in fp32. Provenance and notes are filled in with something to recognise.
Capture reference_capture(const Problem& problem, const Geometry& geometry, unsigned seed,
                          std::optional<Region> region = std::nullopt);

}  // namespace attn_diag::testing
