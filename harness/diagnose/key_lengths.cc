#include "harness/diagnose/key_lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "attn_diag/harness/error.h"
#include "harness/compare/entries.h"

namespace attn_diag {

Comparison compare_case(const ForeignCase& one, const Tolerance& tolerance, int threads) {
  if (one.kv_lens.empty())
    return compare_with_reference(one.capture, one.extras, tolerance, threads);
  Comparison out = compare_entries(one.capture, one.kv_lens, one.extras, tolerance, threads);
  out.notes.push_back(fmt::format("Each batch entry is judged by its own keys: the first {} of {}.",
                                  fmt::join(one.kv_lens, ", "), one.capture.problem.seqlen_k));
  return out;
}

CaseToDiagnose case_to_diagnose(const ForeignCase& one, const Comparison& comparison) {
  if (one.kv_lens.empty()) return {one, ""};
  std::size_t batch = 0;
  const auto wrong = std::find_if(comparison.tensors.begin(), comparison.tensors.end(),
                                  [](const TensorComparison& t) { return t.mismatched > 0; });
  if (wrong != comparison.tensors.end() && wrong->first)
    batch = static_cast<std::size_t>(wrong->first->index[0]);
  const std::int32_t keys = one.kv_lens[batch];
  if (keys == 0)
    throw Error(fmt::format(
        "Batch entry {} has no keys, so that o is 0 and lse is -inf: there is no formula to look "
        "for a bug in.",
        batch));
  const auto at = static_cast<std::int64_t>(batch);
  ForeignCase entry = one;
  entry.capture = entry_of(one.capture, at, keys);
  entry.extras = entry_of(one.extras, one.capture.problem, at, keys);
  entry.kv_lens.clear();
  return {std::move(entry), fmt::format("Looked for in batch entry {} by itself, with its {} {}.",
                                        batch, keys, keys == 1 ? "key" : "keys")};
}

CaseToDiagnose case_to_diagnose(const ForeignCase& one, const Tolerance& tolerance, int threads) {
  return case_to_diagnose(
      one, one.kv_lens.empty() ? Comparison() : compare_case(one, tolerance, threads));
}

std::vector<std::string> lengths_that_fit(const ForeignCase& one, const Tolerance& tolerance,
                                          int threads) {
  const std::int32_t most = one.capture.problem.seqlen_k;
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> others;
  const auto add = [&](const char* words, const auto& length) {
    others.emplace_back(words, one.kv_lens);
    for (std::int32_t& n : others.back().second) n = std::clamp(length(n), 0, most);
  };
  add("every key is seen: the lengths are not used", [&](std::int32_t) { return most; });
  add("one key more is seen", [](std::int32_t n) { return n + 1; });
  add("one key less is seen", [](std::int32_t n) { return n - 1; });
  add("all have the length of the first batch entry", [&](std::int32_t) { return one.kv_lens[0]; });
  std::vector<std::string> fit;
  for (const auto& [words, lengths] : others) {
    if (lengths == one.kv_lens) continue;
    const Comparison as_if = compare_entries(one.capture, lengths, one.extras, tolerance, threads);
    if (as_if.agrees() && as_if.unjudged() == 0) fit.push_back("all is right where " + words);
  }
  return fit;
}

}  // namespace attn_diag
