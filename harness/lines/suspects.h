// Lines that may be at fault, the likeliest first.
#pragma once

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "attn_diag/harness/lines.h"
#include "harness/lines/causes.h"
#include "harness/lines/graph_walk.h"
#include "harness/lines/site_words.h"
#include "harness/lines/source_text.h"

namespace attn_diag::lines {

class Suspects : public Walk {
 public:
  Suspects(const Terms& terms, LineDivergence& out) : Walk(terms), x_out(out) {}

  // Whether nothing but the first suspect explains what is seen.
  bool sure() const { return x_sure; }

 protected:
  // Notes which heads the wrong elements belong to.
  void note_heads(const std::vector<OutputElement>& elements);
  // The suspect that comes next explains alone what is seen, if it is the first.
  void be_sure() { x_sure = x_sure || x_out.suspects.empty(); }
  void suggest(const std::string& file, const std::string& function, int line, int column,
               const std::string& variable, const std::string& why);
  void suggest(std::uint32_t site_number, const std::string& why);
  // What a site's words name.
  void suggest(std::uint32_t site_number, const NamedLine& at, const std::string& why);
  // Whether a loop declares the variable that the site is not in: two variables with one value have each other's names.
  bool is_of_other_loop(std::uint32_t site_number, const NamedLine& at);
  void suggest_node(std::uint32_t n, const std::string& why);
  // The lines that made what a number is made of, the nearest first, until there are `enough` suspects.
  void suggest_way_to(std::uint32_t n, std::size_t enough);
  // Whether a line that returns a number does so for several others: one of those is likelier to be wrong.
  bool is_shared_helper(std::uint32_t site_number);
  // The variables that an index is made of: those that are computed before those that are only named.
  void suggest_indices(std::uint32_t site_number, const std::string& why);
  // Where a line makes a block of numbers at once: what few other accesses use comes first, since what others use, too,
  // would be wrong there as well.
  std::vector<NamedLine> by_likelihood(std::uint32_t site_number, std::vector<NamedLine> uses);
  // Of several assignments to one variable the nearest above the line of the site.
  std::vector<NamedLine> with_nearest_first(std::uint32_t site_number,
                                            std::vector<NamedLine> uses) const;
  // Loads that loaded nothing of what is known.
  void suggest_unused_loads(const std::string& why);
  // Those of the variables whose line computes them.
  void suggest_computed(std::uint32_t site_number, const std::vector<NamedLine>& variables,
                        const std::string& why);
  // Where a line adds one variable to another: what that was given.
  void suggest_step(std::uint32_t site_number, const NamedLine& at);
  // Whether no thread came to the line of a site, in whichever instance of a template: of stores at all, else with a number
  // of the inputs.
  bool never_ran(std::uint32_t s) const;
  static bool is_among(const Condition& condition, const std::vector<Condition>& others);
  // A loop whose line computes nothing comes after the lines that computed its range.
  // `lacks`: steps may be too large.
  void suggest_condition(std::uint32_t site_number, const Condition& condition,
                         const std::string& why, bool lacks);
  // A variable by its name and where it gets its value.
  std::tuple<std::string, std::string, int> key_of(std::uint32_t site_number,
                                                   const NamedLine& use) const {
    return {use.name, use.file.empty() ? site(site_number).home : use.file, use.line};
  }
  // Whether something that is stored behind all loops has the variable in its index.
  bool is_place_of_output(std::uint32_t site, const NamedLine& at) const;
  // The sites that store to a variable of one of these names.
  std::vector<std::uint32_t> stores_to(const std::vector<std::string>& names) const;
  // Loops around a site that leave their first steps out, where something lacks.
  void suggest_late_loops(std::uint32_t site_number);
  // The same of loops around what makes its variables.
  void suggest_late_loops_of_uses(std::uint32_t site_number);
  // The same of loops around a line, by its text.
  void suggest_late_loops_around(const std::string& file, const std::string& function, int line);
  // The calls of a lambda that compute what they give it.
  void suggest_calls_of(const SourceText::Lambda& lambda, const std::string& file,
                        const std::string& function, const std::string& why);
  const std::string& text_of(std::uint32_t site_number, const NamedLine& at);
  // The file of a line that is told of the site.
  const std::string& file_of(std::uint32_t site_number, const NamedLine& at) const {
    return at.file.empty() ? site(site_number).home : at.file;
  }
  void suggest_callers(std::uint32_t site_number, const std::string& why);
  // Functions of one line that the statement calls: "bool in() const { return row < rows(); }".
  void suggest_short_calls(const std::string& file, int line, const std::string& why);
  // Where functions that the line calls return.
  void suggest_returns(std::uint32_t site_number, const std::string& why);
  // The innermost of these calls, and what is computed of the integers that it names.
  void suggest_call(std::uint32_t site_number, const std::string& why);
  void suggest_conditions(std::uint32_t site_number, const char* kind, const std::string& why,
                          bool lacks = true);
  // Of those, what decides about a site and not about one that ran before it.
  void suggest_conditions_behind(std::uint32_t ran, std::uint32_t site_number,
                                 const std::string& why);
  // Whether the blocks that work on the row of q loaded all of what it needs: of k or v what it sees, of q itself; of v
  // the columns of o that watched blocks make. Other blocks may load the same rows of k and v, for heads that share
  // them. True where that is not known.
  bool loads_all(unsigned buffer, std::uint32_t row);
  // "does not load all of v"
  std::string lacks_text(unsigned buffer, std::uint32_t row);
  // Whether they loaded the first column of no row of k or v of the query's head.
  bool loads_none(unsigned buffer, std::uint32_t row);
  // The first column of a key. True where that is not known.
  bool loads_key(unsigned buffer, std::uint32_t row, unsigned key);
  // Of k or v the first key that the row sees: what begins behind it is shifted. True where that is not known.
  bool loads_first_key(unsigned buffer, std::uint32_t row);
  void note_loaders();
  // The sources of what was compiled.
  std::set<std::string> files_of_sites() const;
  // "to[i] = from[i] * factor;"
  bool copies_elements(std::uint32_t s);
  // Whether code of the host copied of it, perhaps into another order.
  bool copies_input(unsigned buffer) const;
  // What makes the place of an access of the thread's index, where its own line only names that. Whether anything does.
  bool suggest_place_of_thread(std::uint32_t n, const std::string& why);
  // Of two suspects from there on: where one line stands more than once in its function and the other does not, they should be
  // alike, and the other is.
  void put_odd_one_first(std::size_t from);
  // The loads of an input and what they are made of.
  void suggest_loader(std::uint32_t loader, const std::string& why);
  // Where a helper loads from an address that it was given: the call that makes it, and what that is made of.
  void suggest_given(std::uint32_t loader, const std::string& why);
  // Where nothing moves the pointer of a load from step to step of a loop: what moves another.
  void suggest_beside_unmoved(std::uint32_t loader);
  // What comes before the line of an access: "q[d]" computes nothing, what is wrong with it was made where q was; and
  // where the first head is right, what depends on the head.
  void suggest_what_it_is_of(std::uint32_t access, const std::string& why);
  // What a line takes from the index of the block and no load of q does: the head of k and v.
  void suggest_head(std::uint32_t site_number, const std::string& why);
  // Where the pointer that is read there was computed.
  void suggest_pointer(std::uint32_t access, const std::string& why);
  // Whether the load has the first element of its head: what it begins with is right then, not how it goes on.
  bool begins_right(std::uint32_t loader);
  // What loads of k and of v have in common, where neither comes whole: it is wrong in both.
  void suggest_shared_of_k_and_v(std::uint32_t row, const std::string& why);
  // What a line takes from the index of the block alone, as the place of a head; where it takes nothing, what moves others.
  void suggest_of_block(std::uint32_t site_number, const std::string& why);
  // Where nothing moves the array of an access on to a block's own part: the line that moves others.
  void suggest_mover_of_others(std::uint32_t site_number);
  // The same, if the access has nothing of the block's index.
  void suggest_unmoved_by_block(std::uint32_t site_number);
  void suggest_loaders(unsigned buffer, const std::string& why);
  // Whether they loaded the first keys that the row sees, and not the last.
  bool lacks_last_keys(unsigned buffer, std::uint32_t row);
  // The nearest line above that computes the variable, by its text: the compiler may have left no name to it.
  void suggest_computed_above(const std::string& file, const std::string& function, int line,
                              const std::string& name, const std::string& why);
  // What a line compares that gives a variable one of two numbers: "s = row >= key ? s : none;".
  void suggest_chosen_by(std::uint32_t s, const std::string& why);
  // Where lacks_last_keys(), of a helper that several calls load by: what guards one of the calls and not another.
  // Whether a call of the loader that the source has elsewhere loads nothing but what the other has loaded: that it runs
  // is not what is wrong.
  bool repeats_loads_of(std::uint32_t s, std::uint32_t loader) const;
  void suggest_guards_of_later_loads(unsigned buffer);
  // Whether it guards loads of an input that comes whole.
  bool guards_whole(const Condition& condition, unsigned buffer);
  void suggest_uses(std::uint32_t site_number, const std::string& why);
  // What is computed of the indices that the line names and of which no value is known, as of unrolled loops.
  void suggest_unseen_indices(std::uint32_t site_number, const std::string& why);
  // The same of pointers that the line goes by, which are made of what is known to be used.
  void suggest_unseen_pointers(std::uint32_t site_number, const std::string& why);
  // Variables that are given a constant that should not be.
  template <class Bad>
  void suggest_constants(std::uint32_t s, const std::string& why, const Bad& bad) {
    for (const NamedLine& use : variables_in(site(s).uses, ','))
      if (use.constant && bad(*use.constant)) {
        if (std::isfinite(*use.constant)) be_sure();  // an infinity may be meant for another use
        suggest(s, use, why);
      }
  }
  // Among numbers that hold what lacks elsewhere (`lacks`: how much of it a node has), the one that has most, if nobody takes
  // it further. Says whether there is one, and suggests what replaced it.
  template <class Lacks>
  bool suspect_dropped(const Lacks& lacks) {
    if (suspect_replaced(lacks)) return true;
    for (const bool by_thread : {false, true}) {
      if (by_thread && x_graph.whole_blocks) break;
      const std::vector<bool>& alive = reaches_output(by_thread);
      std::uint32_t dropped = 0, most = 0;
      bool kept = false;
      for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
        const std::uint32_t share = node(n).site == 0 ? 0 : lacks(n);
        if (share == 0 || share < most) continue;
        if (share > most) kept = false;
        most = share;
        kept = kept || alive[n];
        if (!alive[n]) dropped = n;
      }
      if (most == 0) return false;
      if (!kept && suggest_what_drops(dropped, by_thread)) return true;
    }
    return false;
  }
  bool is_same_line(std::uint32_t a, std::uint32_t b) const {
    return site(a).line == site(b).line && site(a).file == site(b).file;
  }
  // The lines that read what other threads stored by the line of this store, and the loops that decide which of it.
  void suggest_readers_beside(std::uint32_t store, const std::string& why);
  // Where lanes add up in steps what they have: the loop, which may leave one out.
  void suggest_loop_over_lanes(std::uint32_t site_number);
  // Of shuffles one below the other that add up what lanes have: beside which one a step is missing.
  void suggest_missing_step(std::uint32_t site_number);
  // The line of the choice that makes what a store stores by one name, to an element of the array where one is named, and
  // that name; 0: there is none.
  std::pair<int, std::string> choice_stored_by(std::uint32_t store, const std::string& array);
  // Whether a number goes into o or lse, other than by a maximum; `by_thread`: what another lane took counts as taken
  // by its own thread only if that has it, too.
  const std::vector<bool>& reaches_output(bool by_thread);
  // The conditions under which a variable is used that each step of a loop has of its own. Says whether there are any.
  bool suggest_guards_of_uses(const ValueSite& made);
  // The loads, stores and choices that a number went through.
  void suggest_moves(std::uint32_t n, const std::string& why);

  LineDivergence& x_out;
  std::uint32_t x_row = kNone;  // of q, that is wrong
  bool x_first_step = false;    // what is wrong is so before a loop has advanced anything
  bool x_later_step = false;    // the first step of the loop was right
  std::set<std::uint32_t> x_loaders[3];
  SourceText x_text;
  bool x_only_later_heads =
      false;  // are wrong: the first is right, whatever a head is multiplied by

 private:
  // Stores that replaced what nobody had read.
  template <class Lacks>
  bool suspect_replaced(const Lacks& lacks) {
    const std::size_t before = x_out.suspects.size();
    for (const host::ReplacedValue& one : x_graph.replaced) {
      if (lacks(one.node) <= (one.by == 0 ? 0 : lacks(one.by)) || begins_anew(one.site) ||
          is_of_next_head(one))
        continue;
      // In the next step of its own line: somebody should have read it.
      if (is_same_line(one.site, node(one.node).site))
        suggest_readers_beside(one.node, "takes what other threads stored, not all of it");
      if (one.by == 0) suggest_stored_choice(one.site);
      suggest(one.site, "replaces what nobody had read: " + term_text(one.node));
    }
    return x_out.suspects.size() > before;
  }
  // Of what a line stores by name where a choice makes it, "float x = j <= end ? s : -INFINITY;": what is compared there,
  // as far as that is computed, and the choice.
  void suggest_stored_choice(std::uint32_t store);
  // Whether a store is where its variable is declared: what was there before was of an earlier step's.
  bool begins_anew(std::uint32_t store) {
    const ValueSite& at = site(store);
    return declares_integer(x_text.line(at.file, at.line), at.variable).has_value();
  }
  // Whether blocks of another head use the same memory next: that is no fault of theirs.
  bool is_of_next_head(const host::ReplacedValue& one) const {
    if (x_graph.whole_blocks || is_same_line(one.site, node(one.node).site) || one.by == 0 ||
        node(one.node).where >> 10 == node(one.by).where >> 10)
      return false;
    const Term &was = x_terms[one.node], &is = x_terms[one.by];
    const auto queries = static_cast<std::uint32_t>(x_attention.problem().seqlen_q);
    return was.kind != TermKind::kNumber && is.kind != TermKind::kNumber &&
           was.kind != TermKind::kElement && is.kind != TermKind::kElement &&
           was.row / queries != is.row / queries;
  }
  // The atomic that adds it to something; 0: none does.
  std::uint32_t added_by_atomic(std::uint32_t n) const;
  // `by_thread`: its own thread does not take it further.
  bool suggest_what_drops(std::uint32_t n, bool by_thread);

  bool x_sure = false;
  std::map<std::pair<std::string, int>, std::set<int>> x_accesses;  // by variable: lines
  std::vector<bool> x_alive[2];
  bool x_loaders_known = false;
  // By the row of q, what was loaded of q, k and v: rows and columns, as one number each.
  struct Loaded {
    std::array<std::unordered_set<std::uint64_t>, 3> of;
    // Loaded by blocks that others read, of which not all need be watched.
    std::array<bool, 3> by_sources{};
    std::vector<bool> columns_of_o;  // that watched blocks make, or nobody
  };
  const Loaded& loaded_for(std::uint32_t row);
  void note_columns_of_o(std::uint32_t row, Loaded& loaded, std::set<std::uint32_t>& makers) const;
  bool is_needed(const Loaded& loaded, unsigned buffer, std::uint32_t column) const {
    return buffer != 2 || loaded.columns_of_o[column];
  }
  // The first that is needed; kNone: there is none.
  std::uint32_t first_column(const Loaded& loaded, unsigned buffer) const;
  const std::unordered_set<std::uint64_t>& loaded_elsewhere(unsigned buffer);
  std::map<std::uint32_t, Loaded> x_loaded;
  std::array<std::optional<std::unordered_set<std::uint64_t>>, 3> x_elsewhere;
};

}  // namespace attn_diag::lines
