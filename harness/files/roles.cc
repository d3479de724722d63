#include "harness/files/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "attn_diag/harness/error.h"

namespace attn_diag::files {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// "attn/query" -> "query", "model.0.q" -> "q".
std::string_view last_component(std::string_view name) {
  const std::size_t at = name.find_last_of("/.");
  return at == std::string_view::npos ? name : name.substr(at + 1);
}

// How well a name says that it is of a role: 2, its last component is such a name; 1, its last word is
// ("case3_q", but no gradient); 0 not.
int fit(const Array& array, ForeignRole role) {
  const auto& names = names_of(role);
  const std::string own = lower(last_component(array.name));
  if (std::find(names.begin(), names.end(), own) != names.end()) return 2;
  const std::size_t at = own.find_last_of("_-");
  if (at == std::string::npos || own.find("grad") != std::string::npos) return 0;
  return std::find(names.begin(), names.end(), own.substr(at + 1)) != names.end() ? 1 : 0;
}

std::string list_text(const std::vector<const Array*>& arrays) {
  std::vector<std::string> texts;
  for (const Array* a : arrays) texts.push_back(a->text());
  return fmt::format("{}", fmt::join(texts, "; "));
}

const Array* by_name(const std::vector<Array>& arrays, ForeignRole role) {
  for (const int wanted : {2, 1}) {
    std::vector<const Array*> found;
    for (const Array& a : arrays)
      if (fit(a, role) == wanted) found.push_back(&a);
    if (found.size() == 1) return found.front();
    if (found.size() > 1)
      throw Error(fmt::format("{} arrays could be {}: {}. Say which: --{} NAME.", found.size(),
                              name(role), list_text(found), name(role)));
  }
  return nullptr;
}

const Array* by_source(const std::vector<Array>& arrays, ForeignRole role,
                       const std::string& source) {
  std::vector<const Array*> found, of_file;
  for (const Array& a : arrays) {
    if (source == a.name || source == "/" + a.name || source == a.file + ":" + a.name ||
        source == a.file + ":/" + a.name)
      found.push_back(&a);
    else if (source == a.file)
      of_file.push_back(&a);
  }
  if (found.empty()) found = of_file;
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    std::vector<const Array*> all;
    for (const Array& a : arrays) all.push_back(&a);
    throw Error(fmt::format("--{} names {}, but the files have no such array. They have: {}.",
                            name(role), source, list_text(all)));
  }
  throw Error(fmt::format("--{} names {}, which are {} arrays: {}. Say which: --{} FILE:NAME.",
                          name(role), source, found.size(), list_text(found), name(role)));
}

}  // namespace

const std::vector<std::string_view>& names_of(ForeignRole role) {
  static const std::array<std::vector<std::string_view>, kNumForeignRoles> names = {{
      {"q", "query", "queries", "query_states"},
      {"k", "key", "keys", "key_states"},
      {"v", "value", "values", "value_states"},
      {"o", "out", "output", "attn_output", "attn_out", "attention_output", "context"},
      {"lse", "softmax_lse", "logsumexp", "log_sum_exp"},
      {"bias", "attn_bias", "attention_bias"},
  }};
  return names[static_cast<std::size_t>(role)];
}

std::array<const Array*, kNumForeignRoles> find_roles(const std::vector<Array>& arrays,
                                                      const ForeignHints& hints) {
  std::array<const Array*, kNumForeignRoles> found{};
  for (std::size_t i = 0; i < kNumForeignRoles; ++i) {
    const auto role = static_cast<ForeignRole>(i);
    found[i] =
        hints.source[i].empty() ? by_name(arrays, role) : by_source(arrays, role, hints.source[i]);
    if (found[i] != nullptr || role == ForeignRole::kLse || role == ForeignRole::kBias) continue;
    std::vector<const Array*> all;
    for (const Array& a : arrays) all.push_back(&a);
    throw Error(fmt::format(
        "No array is {0}. Expected one named {1}; found: {2}. Say which it is: --{0} NAME, or "
        "--{0} FILE.",
        name(role), fmt::join(names_of(role), ", "), all.empty() ? "none" : list_text(all)));
  }
  return found;
}

std::optional<std::string> file_of_source(const std::string& source) {
  const auto is_file = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path, ignored);
  };
  if (is_file(source)) return source;
  const std::size_t colon = source.rfind(':');
  if (colon != std::string::npos && is_file(source.substr(0, colon)))
    return source.substr(0, colon);
  // Looks like a file: then it has to be there.
  if (source.find('/') == std::string::npos && source.find('.') == std::string::npos)
    return std::nullopt;
  for (const std::string_view ending : {".npy", ".npz", ".h5", ".hdf5", ".safetensors"})
    if (source.ends_with(ending)) return source;
  return std::nullopt;
}

}  // namespace attn_diag::files
