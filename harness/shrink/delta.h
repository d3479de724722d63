// Making what fails smaller by trying, without knowing what it is.
//
// Nothing is taken to be monotone: 65 may fail, 64 pass, and 33 fail again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace attn_diag::shrink {

// Which of these sizes, in their order, is the first that fails; nullopt: none that could be tried.
using FirstSize =
    std::function<std::optional<std::size_t>(const std::vector<std::int64_t>& candidates)>;

// A size that fails and whose neighbour below, of `sizes`, was tried and does not. `sizes` ascend, and the last one
// is known to fail. First 1, 2, 4, ... and those of `likely` are tried, from below; then the way from the largest of
// them that does not fail is halved.
std::int64_t smaller_size(const std::vector<std::int64_t>& sizes,
                          const std::vector<std::int64_t>& likely, const FirstSize& first_failing);

// For sets of parts: set(i) is candidate i, ascending numbers of the parts that are kept.
using SetOfParts = std::function<std::vector<int>(std::size_t candidate)>;
using FirstSet =
    std::function<std::optional<std::size_t>(std::size_t candidates, const SetOfParts& set)>;

// Some of parts 0..parts-1 that fail together, but not without any one of them (Zeller's ddmin). Empty: it fails
// without any part.
std::vector<int> necessary_parts(int parts, const FirstSet& first_failing);

}  // namespace attn_diag::shrink
