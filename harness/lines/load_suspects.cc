// What is loaded of the inputs for a row, what is not, and by which lines.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "harness/lines/suspects.h"

namespace attn_diag::lines {

std::uint32_t Suspects::first_column(const Loaded& loaded, unsigned buffer) const {
  for (std::uint32_t d = 0; d < loaded.columns_of_o.size(); ++d)
    if (is_needed(loaded, buffer, d)) return d;
  return kNone;
}

bool Suspects::loads_none(unsigned buffer, std::uint32_t row) {
  if (is_cut()) return false;
  const Loaded& loaded = loaded_for(row);
  const std::uint32_t column = first_column(loaded, buffer);
  if (column == kNone) return false;
  for (unsigned j = 0; j < static_cast<unsigned>(x_attention.problem().seqlen_k); ++j)
    if (loaded.of[buffer].count(std::uint64_t{key_row(row, j)} << 32 | column) != 0) return false;
  return true;
}

bool Suspects::loads_key(unsigned buffer, std::uint32_t row, unsigned key) {
  if (is_cut()) return true;
  const Loaded& loaded = loaded_for(row);
  const std::uint32_t column = first_column(loaded, buffer);
  return column == kNone ||
         loaded.of[buffer].count(std::uint64_t{key_row(row, key)} << 32 | column) != 0;
}

bool Suspects::loads_first_key(unsigned buffer, std::uint32_t row) {
  for (unsigned j = 0; j < static_cast<unsigned>(x_attention.problem().seqlen_k); ++j)
    if (x_attention.visible(row, j)) return loads_key(buffer, row, j);
  return true;
}

bool Suspects::loads_all(unsigned buffer, std::uint32_t row) {
  if (is_cut()) return true;
  const Loaded& loaded = loaded_for(row);
  const Problem& p = x_attention.problem();
  const auto dim = static_cast<std::uint32_t>(buffer == 2 ? p.head_dim_v : p.head_dim);
  const auto has_row = [&](std::uint32_t of) {
    for (std::uint32_t d = 0; d < dim; ++d) {
      const std::uint64_t element = std::uint64_t{of} << 32 | d;
      if (is_needed(loaded, buffer, d) && loaded.of[buffer].count(element) == 0 &&
          !(loaded.by_sources[buffer] && loaded_elsewhere(buffer).count(element) != 0))
        return false;
    }
    return true;
  };
  if (buffer == 0) return has_row(row);
  for (unsigned j = 0; j < static_cast<unsigned>(p.seqlen_k); ++j)
    if (x_attention.visible(row, j) && !has_row(key_row(row, j))) return false;
  return true;
}

std::string Suspects::lacks_text(unsigned buffer, std::uint32_t row) {
  const std::vector<bool>& columns = loaded_for(row).columns_of_o;
  const bool part =
      buffer == 2 && std::find(columns.begin(), columns.end(), false) != columns.end();
  return fmt::format("does not load all of {}{}", kBuffers[buffer],
                     part ? " that its block needs" : "");
}

const std::unordered_set<std::uint64_t>& Suspects::loaded_elsewhere(unsigned buffer) {
  std::optional<std::unordered_set<std::uint64_t>>& out = x_elsewhere[buffer];
  if (out) return *out;
  out.emplace();
  x_terms.for_each_loaded_elsewhere(static_cast<int>(buffer),
                                    [&](std::uint32_t row, std::uint32_t column) {
                                      out->insert(std::uint64_t{row} << 32 | column);
                                    });
  return *out;
}

void Suspects::note_columns_of_o(std::uint32_t row, Loaded& loaded,
                                 std::set<std::uint32_t>& makers) const {
  loaded.columns_of_o.assign(static_cast<std::size_t>(x_attention.problem().head_dim_v), true);
  if (x_graph.watched.empty() || x_graph.outputs.empty()) return;
  std::vector<std::uint32_t> unstored;
  bool others = false;
  for (std::size_t e = 0; e < x_graph.outputs[0].size(); ++e) {
    std::uint32_t of = 0, column = 0;
    x_attention.locate_output(e, of, column);
    if (of != row) continue;
    const std::uint32_t block = x_graph.outputs[0][e].block;
    const bool is_watched = block != ~0u && x_graph.is_watched(block);
    if (block == ~0u) unstored.push_back(column);
    if (is_watched) makers.insert(block);
    others = others || !(is_watched || block == ~0u);
    loaded.columns_of_o[column] = is_watched;
  }
  // Who should have made them?
  for (const std::uint32_t column : unstored) loaded.columns_of_o[column] = !others;
}

const Suspects::Loaded& Suspects::loaded_for(std::uint32_t row) {
  const auto [at, missing] = x_loaded.try_emplace(row);
  Loaded& loaded = at->second;
  if (!missing) return loaded;
  std::set<std::uint32_t> makers;
  note_columns_of_o(row, loaded, makers);
  // Blocks that work on other rows of q alone load for themselves; those that work on none, for all: another kernel's.
  std::set<std::uint32_t> own, others;
  if (!x_graph.whole_blocks)
    for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
      const Term& term = x_terms[n];
      const bool of_q = term.kind == TermKind::kScore || term.kind == TermKind::kWeight ||
                        (term.kind == TermKind::kElement && term.buffer == 0);
      if (of_q && !is_host_copy(n)) (term.row == row ? own : others).insert(node(n).where >> 10);
    }
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    const std::uint32_t block = node(n).where >> 10;
    if (!node(n).is_input() || is_host_copy(n) ||
        !(own.count(block) != 0 || others.count(block) == 0 || own.empty()))
      continue;
    loaded.of[term.buffer].insert(std::uint64_t{term.row} << 32 | term.column);
    if (makers.count(block) == 0) loaded.by_sources[term.buffer] = true;
  }
  return loaded;
}

void Suspects::note_loaders() {
  if (x_loaders_known) return;
  x_loaders_known = true;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (node(n).is_input() && !is_host_copy(n)) x_loaders[x_terms[n].buffer].insert(node(n).site);
  if (x_graph.whole_blocks) return;
  // Who copies an input element by element, as an adapter does, makes no index: who loads the copy does.
  for (std::set<std::uint32_t>& loaders : x_loaders) {
    std::set<std::uint32_t> of_copies;
    const std::set<std::uint32_t> all = loaders;
    for (const std::uint32_t copier : all) {
      if (!copies_elements(copier)) continue;
      std::set<std::uint32_t> found;
      for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
        if (const std::uint32_t from = is_load(n) ? node(n).operand[0] : 0;
            from != 0 && op(from) == ValueOp::kStore && is_same_line(node(from).site, copier))
          found.insert(node(n).site);
      if (!found.empty()) loaders.erase(copier);
      of_copies.merge(found);
    }
    loaders.merge(of_copies);
  }
}

bool Suspects::copies_elements(std::uint32_t s) {
  const std::string& text = x_text.line(site(s).file, site(s).line);
  const std::vector<std::string> arrays = indexed_names(text), stored = stored_arrays(text);
  return stored.size() == 1 && arrays.size() == 2 && is_plain_subscript(text, arrays[0]) &&
         is_plain_subscript(text, arrays[1]) && subscript_names(text, arrays[0]).size() == 1 &&
         subscript_names(text, arrays[0]) == subscript_names(text, arrays[1]);
}

bool Suspects::copies_input(unsigned buffer) const {
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (node(n).is_input() && is_host_copy(n) && x_terms[n].buffer == buffer) return true;
  return false;
}

void Suspects::suggest_unused_loads(const std::string& why) {
  std::set<std::uint32_t> used;
  for (const ValueNode& one : x_graph.nodes) used.insert(one.site);
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s)
    if ((site(s).op == ValueOp::kLoad || site(s).op == ValueOp::kInput) && used.count(s) == 0)
      suggest_loader(s, why);
}

void Suspects::suggest_loader(std::uint32_t loader, const std::string& why) {
  if (x_later_step) suggest_beside_unmoved(loader);
  suggest_what_it_is_of(loader, why);
  // A helper that loads from an address that it was given, as it is: the call says which.
  const ValueSite& load = site(loader);
  const std::string& text = x_text.line(load.file, load.line);
  const std::vector<NamedLine> uses = variables_in(load.uses, ',');
  const bool given = subscript_names(text, load.variable).empty() &&
                     text.find('+') == std::string::npos &&
                     std::none_of(uses.begin(), uses.end(),
                                  [&](const NamedLine& use) { return use.name == load.variable; });
  if (given && !x_graph.whole_blocks) suggest_given(loader, why);
  suggest_unseen_pointers(loader, why);
  suggest(loader, why);
  suggest_indices(loader, why);
  suggest_callers(loader, why);
}

void Suspects::suggest_given(std::uint32_t loader, const std::string& why) {
  const std::vector<NamedLine> uses = variables_in(site(loader).uses, ',');
  // Those that a line names, which the same function computes above it.
  const auto makers_of = [&](const NamedLine& at) {
    std::vector<NamedLine> makers;
    for (const NamedLine& use : uses)
      if (file_of(loader, use) == file_of(loader, at) && use.line < at.line &&
          has_name(text_of(loader, at), {use.name}) && computes(text_of(loader, use), use.name))
        makers.push_back(use);
    return makers;
  };
  std::vector<NamedLine> passed;
  for (const NamedLine& call : lines_in(site(loader).callers)) {
    if (x_text.launches_within(file_of(loader, call), call.line)) break;
    const std::string& text = text_of(loader, call);
    const std::vector<NamedLine> makers = makers_of(call);
    if (makers.empty()) {
      passed.push_back(call);
      continue;
    }
    // "load(from + column)" computes little itself.
    if (!std::all_of(makers.begin(), makers.end(),
                     [&](const NamedLine& maker) { return is_plain_argument(text, maker.name); }))
      suggest(loader, call, why);
    for (const NamedLine& maker : makers) {
      suggest(loader, maker, why);
      for (const NamedLine& of_it : makers_of(maker)) suggest(loader, of_it, why);
    }
    suggest(loader, call, why);
    break;
  }
  for (const NamedLine& call : passed) suggest(loader, call, why);
  suggest_callers(loader, why);
}

void Suspects::suggest_shared_of_k_and_v(std::uint32_t row, const std::string& why) {
  if (x_graph.whole_blocks || loads_all(1, row) || loads_all(2, row)) return;
  std::set<std::tuple<std::string, std::string, int>> of_v;
  for (const std::uint32_t loader : x_loaders[2])
    for (const NamedLine& use : variables_in(site(loader).uses, ','))
      of_v.insert(key_of(loader, use));
  // What blocks have alike first, and what is computed before the loops over keys.
  const auto suggest_those = [&](bool of_thread, bool loops) {
    for (const std::uint32_t loader : x_loaders[1])
      for (const NamedLine& use : variables_in(site(loader).uses, ','))
        if (!use.sources.empty() && comes_of(use, "t") == of_thread &&
            of_v.count(key_of(loader, use)) != 0 && computes(text_of(loader, use), use.name) &&
            is_loop(text_of(loader, use)) == loops)
          suggest(loader, use, why);
  };
  suggest_those(false, false);
  suggest_those(false, true);
  suggest_those(true, false);
}

bool Suspects::begins_right(std::uint32_t loader) {
  if (x_graph.whole_blocks || x_row == kNone) return false;
  const auto loads = [&](unsigned buffer, std::uint32_t first) {
    const Loaded& loaded = loaded_for(x_row);
    const std::uint32_t column = first_column(loaded, buffer);
    return x_loaders[buffer].count(loader) != 0 && column != kNone &&
           loaded.of[buffer].count(std::uint64_t{first} << 32 | column) != 0;
  };
  return loads(0, x_row) || loads(1, key_row(x_row, 0)) || loads(2, key_row(x_row, 0));
}

void Suspects::suggest_loaders(unsigned buffer, const std::string& why) {
  note_loaders();
  for (const std::uint32_t loader : x_loaders[buffer]) suggest_late_loops(loader);
  suggest_guards_of_later_loads(buffer);
  if (x_row != kNone && !loads_all(buffer, x_row))
    for (const std::uint32_t loader : x_loaders[buffer])
      if (!x_graph.whole_blocks &&
          !chosen_by(x_text.line(site(loader).file, site(loader).line)).empty())
        suggest_chosen_by(loader, "decides which of it is loaded");
  for (const std::uint32_t loader : x_loaders[buffer]) suggest_loader(loader, why);
}

bool Suspects::lacks_last_keys(unsigned buffer, std::uint32_t row) {
  if (buffer == 0 || is_cut()) return false;
  const Loaded& loaded = loaded_for(row);
  const std::uint32_t column = first_column(loaded, buffer);
  bool some = false, lacks = false;
  for (unsigned j = 0; j < static_cast<unsigned>(x_attention.problem().seqlen_k); ++j) {
    if (column == kNone || !x_attention.visible(row, j)) continue;
    const bool has = loaded.of[buffer].count(std::uint64_t{key_row(row, j)} << 32 | column) != 0;
    if (has && lacks) return false;
    some = some || has;
    lacks = lacks || !has;
  }
  return some && lacks;
}

bool Suspects::guards_whole(const Condition& condition, unsigned buffer) {
  return loads_all(buffer, x_row) &&
         std::any_of(x_loaders[buffer].begin(), x_loaders[buffer].end(), [&](std::uint32_t loader) {
           return is_among(condition, conditions_in(site(loader).conditions));
         });
}

bool Suspects::repeats_loads_of(std::uint32_t s, std::uint32_t loader) const {
  std::unordered_set<std::uint64_t> loaded;
  std::vector<std::uint64_t> again;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    // One line may be several sites.
    if (!node(n).is_input() || !is_same_line(node(n).site, loader)) continue;
    const std::string& callers = site(node(n).site).callers;
    const std::uint64_t element = std::uint64_t{x_terms[n].row} << 32 | x_terms[n].column;
    if (callers == site(loader).callers) loaded.insert(element);
    if (callers == site(s).callers) again.push_back(element);
  }
  return !again.empty() && std::all_of(again.begin(), again.end(), [&](std::uint64_t element) {
    return loaded.count(element) != 0;
  });
}

void Suspects::suggest_guards_of_later_loads(unsigned buffer) {
  if (x_graph.whole_blocks || x_row == kNone || !lacks_last_keys(buffer, x_row)) return;
  for (const std::uint32_t loader : x_loaders[buffer])
    for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
      const ValueOp is = site(s).op;
      const bool loads =
          is == ValueOp::kLoad || is == ValueOp::kLoadNumber || is == ValueOp::kInput;
      if (!loads || !is_same_line(s, loader) || site(s).callers.empty() ||
          site(s).callers == site(loader).callers || repeats_loads_of(s, loader))
        continue;
      const std::vector<Condition> held = conditions_in(site(loader).conditions);
      for (const Condition& condition : conditions_in(site(s).conditions))
        if (!condition.loop && !is_among(condition, held) && !guards_whole(condition, 3 - buffer))
          suggest_condition(s, condition, "decides whether another call loads more", true);
    }
}

}  // namespace attn_diag::lines
