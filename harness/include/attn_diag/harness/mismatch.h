// One capture against the reference, as a test framework wants it: yes or no, and the text to show.
// catch2.h wraps this for Catch2; other frameworks can do the same. Link attn_diag::report.
#pragma once

#include <optional>
#include <string>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"
#include "attn_diag/kernels/stage.h"

namespace attn_diag {

// What of a capture is compared; neither: every tensor it has.
struct Selection {
  std::optional<Stage> stage;
  std::optional<Tensor> tensor;
};

struct MatchResult {
  bool matches = false;
  // If it does not match: the first wrong cell with its coordinates, both values, bound and
  // err/bound, the cells around it, kernel and backend, and a command that shows the same. If
  // nothing could be compared: why not. Several lines, the last one without a newline.
  std::string text;
};

// It is no match where nothing was compared, or where a cell was written never or more than once.
MatchResult match_reference(const Capture& capture, const Selection& selection,
                            const Tolerance& tolerance = {});

// "split_k on host: B=1 H=2 S=128 D=64 fp16 causal BHSD, 64x64 tiles, 2 splits"
std::string describe_capture(const Capture& capture);

// The command that traces the same kernel on the same inputs, as one shell line; empty where the
// inputs were not made by make_inputs.
std::string repro_command(const Capture& capture);

}  // namespace attn_diag
