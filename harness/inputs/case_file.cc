#include "harness/inputs/case_file.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "attn_diag/harness/error.h"
#include "harness/capture/capture_fields.h"

namespace attn_diag {
namespace {

// Leaves `value` as it is where there is no such key.
template <class T>
void read_spelling(const CaseFields& fields, const char* key, const char* spellings, T& value) {
  const auto word = fields.find<std::string>(key);
  if (word && !from_text(*word, value)) fields.fail(key, spellings);
}

}  // namespace

toml::table read_toml(const std::string& path) {
  try {
    return toml::parse_file(path);
  } catch (const toml::parse_error& e) {
    throw Error(fmt::format("{}, line {}: {}", path, e.source().begin.line, e.description()));
  }
}

CaseFields CaseFields::or_else(const CaseFields& others) const {
  CaseFields all = *this;
  all.x_tables.insert(all.x_tables.end(), others.x_tables.begin(), others.x_tables.end());
  return all;
}

const toml::node* CaseFields::node(const char* key) const {
  for (const toml::table* table : x_tables)
    if (table != nullptr && table->contains(key)) return table->get(key);
  return nullptr;
}

void CaseFields::fail(const char* key, const std::string& expected) const {
  const char* const colon = x_where.empty() ? "" : ": ";
  const toml::node* const found = node(key);
  if (found == nullptr) throw Error(fmt::format("{}{}{} is missing", x_where, colon, key));
  throw Error(fmt::format("{}{}line {}: {} should be {}", x_where, colon,
                          found->source().begin.line, key, expected));
}

const toml::array& CaseFields::list(const char* key) const {
  const toml::node* const found = node(key);
  if (found == nullptr || !found->is_array()) fail(key, "a list");
  return *found->as_array();
}

std::vector<std::string> CaseFields::texts(const char* key) const {
  std::vector<std::string> all;
  for (const toml::node& item : list(key)) {
    const auto text = item.value<std::string>();
    if (!text) fail(key, "a list of texts");
    all.push_back(*text);
  }
  return all;
}

Problem problem_of(const CaseFields& fields) {
  Problem p;
  p.batch = fields.find<int>("batch").value_or(1);
  p.heads = fields.find<int>("heads").value_or(1);
  p.kv_heads = fields.find<int>("kv_heads").value_or(p.heads);
  p.seqlen_q = fields.number("seqlen_q");
  p.seqlen_k = fields.number("seqlen_k");
  p.head_dim = fields.number("head_dim");
  p.head_dim_v = fields.find<int>("head_dim_v").value_or(p.head_dim);
  read_spelling(fields, "dtype", "fp16, bf16, fp32 or fp64", p.dtype);
  read_spelling(fields, "layout", "BHSD or BSHD", p.layout);
  read_spelling(fields, "mask", "none, causal:top_left, causal:bottom_right or window:LEFT,RIGHT",
                p.mask);
  const float usual = 1.0f / std::sqrt(static_cast<float>(p.head_dim));
  p.softmax_scale = fields.find<float>("softmax_scale").value_or(usual);
  return p;
}

TileShape tile_of(const CaseFields& fields) {
  TileShape tile{0, 0};
  const auto text = fields.find<std::string>("tile");
  char more = 0;
  if (text && std::sscanf(text->c_str(), "%dx%d%c", &tile.block_m, &tile.block_n, &more) != 2)
    fields.fail("tile", "like 64x16");
  return tile;
}

}  // namespace attn_diag
