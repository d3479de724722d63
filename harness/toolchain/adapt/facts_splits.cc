// Split-K: how many splits, and in which types they leave their parts.
#include <fmt/format.h>

#include <algorithm>

#include "harness/toolchain/adapt/facts_code.h"

namespace attn_diag::adapt {

using source::Syntax;

namespace {

// "(n + kTile - 1) / kTile", "cdiv(n, kTile)" of a length: the name or number that it is divided by.
std::string divisor_of_length(const Syntax& s, std::size_t begin, std::size_t end) {
  bool length = false;
  std::string divisor;
  for (std::size_t i = begin; i < end; ++i) {
    if (s[i].is_identifier()) length |= is_length(classify_size(std::string(s[i].text)).role);
    const bool value = s[i + 1].is_identifier() || s[i + 1].kind == source::TokenKind::kNumber;
    if (s.is(i, "/") && value) divisor = std::string(s[i + 1].text);
    if (s.is(i, ",") && value && s.is(i + 2, ")")) divisor = std::string(s[i + 1].text);
  }
  return length ? divisor : "";
}

// How the code computes the number of its splits.
void read_count(FactsCode& code, Facts& facts) {
  const Syntax& s = code.syntax();
  const Model& model = code.model();
  code.each_token([&](const FunctionModel& f, std::size_t i) {
    if (f.is_kernel || f.is_device || facts.split_per_tile || facts.fixed_splits > 0) return;
    if (!s[i].is_identifier() || !s.is(i + 1, "=")) return;
    const Role role = classify_constant(std::string(s[i].text)).role;
    if (role != Role::kNumSplits && role != Role::kTilesN) return;
    const std::size_t end = s.statement_end(i);
    const std::string divisor = divisor_of_length(s, i + 2, end);
    const auto tile = model.value(divisor);
    if (!divisor.empty() && (tile || classify_constant(divisor).role == Role::kTileN)) {
      facts.split_per_tile = true;
      if (tile) facts.tile_n = *tile;
      code.note(NoteKind::kFound, fmt::format("a split for every KV tile: {} = {}", s[i].text,
                                              model.text(i + 2, end)));
    } else if (role == Role::kNumSplits) {
      facts.fixed_splits = model.value(model.text(i + 2, end)).value_or(0);
    }
  });
  if (facts.split_per_tile || facts.fixed_splits > 0) return;
  for (const std::string& name : model.constants())
    if (classify_constant(name).role == Role::kNumSplits)
      facts.fixed_splits = model.value(name).value_or(0);
}

// Whether the length of a split is that of all keys divided by the number of splits: not whole tiles.
bool cuts_keys(const FactsCode& code) {
  const Syntax& s = code.syntax();
  bool found = false;
  code.each_token([&](const FunctionModel&, std::size_t i) {
    if (!s[i].is_identifier() || !s.is(i + 1, "=")) return;
    const std::string divisor = divisor_of_length(s, i + 2, s.statement_end(i));
    found |= !divisor.empty() && classify_constant(divisor).role == Role::kNumSplits;
  });
  return found;
}

bool is_narrow(const Model& model, const std::string& element) {
  std::string type = element;
  for (int i = 0; i < 3 && dtype_of(type).empty(); ++i) type = model.resolve_type(type);
  const std::string dtype = dtype_of(type);
  return !dtype.empty() && dtype != "fp32";
}

}  // namespace

void read_splits(FactsCode& code, Facts& facts) {
  const Model& model = code.model();
  const bool narrow_input = facts.dtypes != std::set<std::string>{"fp32"};
  bool has_partials = false;
  // A workspace holds partials where there are splits.
  const bool splits =
      code.has(Role::kNumSplits) ||
      std::any_of(model.constants().begin(), model.constants().end(), [](const std::string& name) {
        return classify_constant(name).role == Role::kNumSplits;
      });
  for (const FunctionModel* f : code.functions()) {
    if (f->is_device) continue;
    const std::vector<Classified> roles = classify(f->parameters);
    std::string input;
    for (std::size_t i = 0; i < roles.size(); ++i)
      if (roles[i].role == Role::kQ || roles[i].role == Role::kO) input = f->parameters[i].element;
    for (std::size_t i = 0; i < roles.size(); ++i) {
      const Parameter& p = f->parameters[i];
      const bool partial = roles[i].role == Role::kPartialO ||
                           (splits && roles[i].role == Role::kWorkspace && f->is_kernel);
      const bool stats = roles[i].role == Role::kPartialMax || roles[i].role == Role::kPartialSum ||
                         roles[i].role == Role::kPartialLse;
      has_partials |= partial || stats || (splits && roles[i].role == Role::kWorkspace);
      const bool narrow =
          narrow_input && (is_narrow(model, p.element) || (!input.empty() && p.element == input));
      if (!p.is_pointer || !narrow || (!partial && !stats)) continue;
      bool& declared = partial ? facts.partial_in_input_type : facts.stats_in_input_type;
      if (!declared)
        code.note(NoteKind::kFound,
                  fmt::format("'{} {}': partials in the input type", p.type, p.name));
      declared = true;
    }
  }
  if (has_partials && !code.candidate().has(Role::kNumSplits)) read_count(code, facts);
  if (facts.split_per_tile || facts.fixed_splits > 0) facts.takes_splits = true;
  // Bounds of narrow partials are those of the keys in them: a split begins where a tile does.
  if (facts.takes_splits && facts.partial_in_input_type && facts.tile_n != 1 && cuts_keys(code)) {
    facts.tile_n = 1;
    code.note(
        NoteKind::kGuessed,
        "splits are cut between keys, not tiles, and their partials rounded: tiles of one key");
  }
}

}  // namespace attn_diag::adapt
