#include "harness/files/said.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "attn_diag/harness/error.h"
#include "harness/capture/capture_fields.h"

namespace attn_diag::files {
namespace {

struct Value {
  std::string name, text;
};

// The one value of these names; none if there is none. `flag` is what decides between several.
std::optional<Value> only(const Settings& settings, std::initializer_list<const char*> names,
                          const char* flag) {
  std::optional<Value> found;
  for (const auto& [name, text] : settings) {
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    if (found && found->text != text)
      throw Error(fmt::format("The files say {} = {} and {} = {}. Say which: {}.", found->name,
                              found->text, name, text, flag));
    found = Value{name, text};
  }
  return found;
}

double number_of(const Value& value, const char* flag) {
  double number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [rest, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc() || rest != end || !std::isfinite(number))
    throw Error(fmt::format("The files say {} = '{}', which is no number. Say it: {}.", value.name,
                            value.text, flag));
  return number;
}

std::optional<std::string> mask_said(const Settings& settings) {
  if (const auto mask = only(settings, {"mask"}, "--mask")) return mask->text;
  const auto causal = only(settings, {"causal", "is_causal"}, "--mask");
  if (!causal) return std::nullopt;
  if (causal->text == "true" || causal->text == "True" || causal->text == "1") return "causal";
  if (causal->text == "false" || causal->text == "False" || causal->text == "0") return "none";
  throw Error(fmt::format("The files say {} = '{}'; expected true or false. Say it: --mask MASK.",
                          causal->name, causal->text));
}

}  // namespace

Said what_is_said(const Settings& settings, const ForeignHints& hints) {
  Said said;
  said.layout = hints.layout;
  if (!said.layout) {
    if (const auto layout = only(settings, {"layout"}, "--layout")) {
      Layout parsed{};
      if (!from_text(layout->text, parsed))
        throw Error(fmt::format(
            "The files say layout = '{}'; expected BHSD or BSHD. Say it: --layout LAYOUT.",
            layout->text));
      said.layout = parsed;
    }
  }
  if (hints.softmax_scale) {
    said.softmax_scale = static_cast<double>(*hints.softmax_scale);
  } else if (const auto scale = only(settings, {"softmax_scale", "sm_scale", "scale", "scaling"},
                                     "--softmax-scale")) {
    said.softmax_scale = number_of(*scale, "--softmax-scale X");
  }
  said.mask = hints.mask ? hints.mask : mask_said(settings);
  if (hints.softcap) {
    said.softcap = *hints.softcap;
  } else if (const auto cap =
                 only(settings, {"softcap", "logit_softcap", "logits_soft_cap"}, "--softcap")) {
    said.softcap = number_of(*cap, "--softcap X");
  }
  if (hints.kv_lens) {
    said.kv_lens = *hints.kv_lens;
  } else if (const auto lengths = only(settings, {"kv_lens"}, "--kv-lens")) {
    said.kv_lens = lengths_of(lengths->text, "The files say kv_lens = ");
  }
  if (said.softcap < 0)
    throw Error(
        fmt::format("softcap is {}; expected a positive number, or 0 for none.", said.softcap));
  return said;
}

Mask mask_of(const std::string& text, std::int64_t seqlen_q, std::int64_t seqlen_k) {
  Mask mask;
  if (text == "causal" && seqlen_q == seqlen_k) {
    mask.kind = MaskKind::kCausal;
  } else if (text == "causal") {
    throw Error(fmt::format(
        "The mask is causal, but with {} queries and {} keys there are two such masks. Say "
        "which: --mask causal:top_left or --mask causal:bottom_right.",
        seqlen_q, seqlen_k));
  } else if (!from_text(text, mask)) {
    throw Error(
        fmt::format("The mask is '{}'; expected none, causal, causal:top_left, "
                    "causal:bottom_right or window:LEFT,RIGHT. Say it: --mask MASK.",
                    text));
  }
  return mask;
}

std::vector<std::int32_t> lengths_of(const std::string& text, const std::string& what) {
  std::vector<std::int32_t> lengths;
  const char *at = text.data(), *const end = text.data() + text.size();
  for (bool more = true; more; at += more ? 1 : 0) {
    const auto [rest, error] = std::from_chars(at, end, lengths.emplace_back());
    more = rest != end && *rest == ',';
    if (error != std::errc() || (rest != end && !more))
      throw Error(fmt::format("{}'{}'; expected a number of keys for each batch entry: 5,17,64.",
                              what, text));
    at = rest;
  }
  return lengths;
}

void check_lengths(const std::vector<std::int32_t>& kv_lens, const Problem& problem,
                   const std::string& said) {
  if (std::ssize(kv_lens) != problem.batch)
    throw Error(fmt::format("kv_lens has {} numbers; expected one for each of {} batch entries.",
                            kv_lens.size(), problem.batch));
  for (const std::int32_t n : kv_lens)
    if (n < 0 || n > problem.seqlen_k)
      throw Error(fmt::format("kv_lens has {}; expected 0 to {} keys.", n, problem.seqlen_k));
  if (said == "causal")
    throw Error(
        "The mask is causal, but with kv_lens there are two such masks: by the first query and "
        "key, or by the last of each batch entry. Say which: causal:top_left or "
        "causal:bottom_right.");
}

}  // namespace attn_diag::files
