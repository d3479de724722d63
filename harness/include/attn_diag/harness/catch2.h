// Catch2 matchers for captures, for Catch2 2.13 and 3.x. Link attn_diag::report and your Catch2.
//
//     const Kernel kernel = Kernel::load("./my_kernel.so", "host");
//     const InputData inputs = make_inputs(problem, "randn", 0, 1.0);
//     RunOptions options;                                 // every stage, taps on
//     const Capture capture = run_kernel({kernel, problem, inputs, options});
//     REQUIRE_THAT(capture, matches_reference(Stage::kReduce));   // or (Tensor::kP), or ()
//
// With options.isolate = true every stage is fed the reference's inputs, so that only a stage that
// is itself at fault fails.
#pragma once

#if __has_include(<catch2/matchers/catch_matchers.hpp>)
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>
#include <utility>

#include "attn_diag/harness/mismatch.h"

namespace attn_diag {

#if __has_include(<catch2/matchers/catch_matchers.hpp>)
using CaptureMatcherBase = Catch::Matchers::MatcherBase<Capture>;
#else
using CaptureMatcherBase = Catch::MatcherBase<Capture>;
#endif

class ReferenceMatcher : public CaptureMatcherBase {
 public:
  ReferenceMatcher(const Selection& selection, const Tolerance& tolerance)
      : x_selection(selection), x_tolerance(tolerance) {}

  bool match(const Capture& capture) const override {
    MatchResult result = match_reference(capture, x_selection, x_tolerance);
    x_text = std::move(result.text);
    return result.matches;
  }

  // Catch2 asks after match().
  std::string describe() const override {
    std::string text = "matches the reference";
    if (x_selection.stage) text += " at stage " + std::string(name(*x_selection.stage));
    if (x_selection.tensor) text += " in " + std::string(name(*x_selection.tensor));
    return x_text.empty() ? text : text + "\n" + x_text;
  }

 private:
  Selection x_selection;
  Tolerance x_tolerance;
  mutable std::string x_text;
};

inline ReferenceMatcher matches_reference(const Tolerance& tolerance = {}) {
  return {{}, tolerance};
}
inline ReferenceMatcher matches_reference(Stage stage, const Tolerance& tolerance = {}) {
  return {{stage, {}}, tolerance};
}
inline ReferenceMatcher matches_reference(Tensor tensor, const Tolerance& tolerance = {}) {
  return {{{}, tensor}, tolerance};
}

}  // namespace attn_diag

template <>
struct Catch::StringMaker<attn_diag::Capture> {
  static std::string convert(const attn_diag::Capture& capture) {
    return attn_diag::describe_capture(capture);
  }
};
