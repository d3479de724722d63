// Cases that are written in TOML, and what is known of them: fixtures/faults/*/finding.toml, fixtures/diagnosis/*.toml,
// fixtures/hand/*.toml.
#pragma once

#include <toml++/toml.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag {

// Throws Error with the file and the line if it is missing or no TOML.
toml::table read_toml(const std::string& path);

// Keys of several tables; the first table that has a key counts: one kernel's before that of all kernels.
class CaseFields {
 public:
  // Null tables have no keys. `where` begins every error: "bugs.toml, bug x"; the tables must live longer.
  CaseFields(std::vector<const toml::table*> tables, std::string where)
      : x_tables(std::move(tables)), x_where(std::move(where)) {}

  // [section.part] before [section].
  CaseFields(const toml::table& file, const std::string& section, const std::string& part,
             std::string where)
      : CaseFields({file[section][part].as_table(), file[section].as_table()}, std::move(where)) {}

  // These keys before those of `others`.
  CaseFields or_else(const CaseFields& others) const;

  bool has(const char* key) const { return node(key) != nullptr; }
  // None if there is no such key. Throws Error, as all below, if it is of another type.
  template <class T>
  std::optional<T> find(const char* key) const {
    const toml::node* const found = node(key);
    if (found == nullptr) return std::nullopt;
    std::optional<T> value = found->value<T>();
    if (!value) fail(key, type_name<T>());
    return value;
  }
  template <class T>
  T get(const char* key) const {
    std::optional<T> value = find<T>(key);
    if (!value) fail(key, type_name<T>());
    return *std::move(value);
  }
  std::string text(const char* key) const { return get<std::string>(key); }
  int number(const char* key) const { return get<int>(key); }
  const toml::array& list(const char* key) const;
  std::vector<std::string> texts(const char* key) const;

  // Throws Error: "bugs.toml, bug x: tile should be like 64x16".
  [[noreturn]] void fail(const char* key, const std::string& expected) const;

 private:
  template <class T>
  static const char* type_name() {
    if constexpr (std::is_same_v<T, bool>) return "true or false";
    if constexpr (std::is_integral_v<T>) return "a whole number";
    return std::is_floating_point_v<T> ? "a number" : "a text";
  }
  const toml::node* node(const char* key) const;

  std::vector<const toml::table*> x_tables;
  std::string x_where;
};

// batch, heads (1), kv_heads (as many), seqlen_q, seqlen_k, head_dim, head_dim_v (the same), dtype (fp16), layout
// (BHSD), mask (none) and softmax_scale (1/sqrt(head_dim)), spelled as for the command; what is in brackets may be left out.
Problem problem_of(const CaseFields& fields);
// tile: "64x16"; {0, 0} where there is none.
TileShape tile_of(const CaseFields& fields);

}  // namespace attn_diag
