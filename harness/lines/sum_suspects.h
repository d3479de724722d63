// The lines that may be why a sum over keys lacks some, has some it should not, or is stored elsewhere.
#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "harness/lines/number_suspects.h"

namespace attn_diag::lines {

class SumSuspects : public NumberSuspects {
 public:
  // `elements`: all that were looked at; `misplaced`: some hold what belongs to others.
  SumSuspects(const Terms& terms, const std::vector<OutputElement>& elements, bool misplaced,
              LineDivergence& out)
      : NumberSuspects(terms, out), x_elements(elements), x_misplaced(misplaced) {
    note_heads(elements);
  }

  // `list`: elements that are wrong for the same reason.
  void suspect(const std::vector<Cause>& list);

 private:
  void suspect_cause(const std::vector<Cause>& list);
  // Loops over shuffles that double their step up to half of a number, where lanes lack something.
  void suggest_short_doubling(const Cause& cause);
  // Where an output is made of what no line of the loop over keys uses: sums that nothing is added to.
  void suggest_never_updated();
  void suggest_never_updated(const ValueSite& store, const std::string& name, int depth);
  // Shuffles whose lane is a real number: their arguments are the other way round.
  void suggest_real_lanes();
  // How far a key of a row came.
  struct Way {
    std::uint32_t score = 0, weight = 0, part = 0;  // a whole score, a weight, a part of a score
    std::uint32_t begun = 0;                        // the first part, or the whole
    std::uint32_t whole = 0;                        // where the score first was whole
    std::uint32_t times_v = 0;
  };
  // Weights were added, and not multiplied with v.
  void suspect_no_v(const Cause& cause);
  // lse is the logarithm of the right sum, and a wrong number.
  void suspect_lse(const Cause& cause);
  // Where exponentials of the row are of scores less 0: the choice of that.
  void suggest_chosen_maximum(std::uint32_t row);
  // Where lse is a maximum of other scores than those of its sum: where the maximum got its value.
  void suggest_maximum_of_lse(std::uint32_t lse);
  // The lines that give this name its value above a line, and the names that it is made of.
  void suggest_maximum_by_name(const ValueSite& at, int line, const std::string& name, int depth);
  void suggest_scale(std::uint32_t n);
  void suspect_store(const std::vector<Cause>& list);
  // Where no line stores this output at all, and some line all of the other one: that.
  void suggest_store_of_other();
  // Whether the rows that lack are the last ones of heads that have others.
  bool lacks_tails(const std::set<std::uint32_t>& rows) const;
  // Rows that lack, where those that are there are right: what says which row is taken.
  void suggest_shared_with_loads(std::uint32_t s);
  // What says which row a store is for.
  void suggest_rows_of_place(std::uint32_t s);
  // Where whole heads lack: what depends on the block alone.
  void suggest_indices_of_place(std::uint32_t s, const std::vector<Cause>& list, bool whole_rows);
  // Along which axis of the grid heads lie, as far as blocks of stored rows tell: one of which the variables come; empty: not known.
  std::string_view axis_of_heads(const std::vector<NamedLine>& uses,
                                 const std::map<std::size_t, std::uint32_t>& block_of) const;
  // By row (batch, head, query) of o that anybody stored.
  std::map<std::size_t, std::uint32_t> blocks_of_rows() const;
  // What threads alone have is a part of the rows that a block has.
  static void put_blocks_first(std::vector<NamedLine>& uses);
  void suspect_place(Cause cause, bool rows);
  void suggest_kept_weights(const Cause& cause);
  // Whether v, as it is summed, has the factor that makes o wrong.
  bool explains_factor(std::uint32_t v, const Cause& cause);
  // Where a number was stored before kernels copied it, element by element, as those of an adapter do.
  std::uint32_t store_before_copies(std::uint32_t n, std::uint32_t s);
  // The line that takes a score of another row where one of the row itself was made beside it, which nobody uses: the
  // other half of a pair.
  void suspect_taken_for(const Cause& cause);
  // Where a column of a sum was v, on its way into it; 0: not found.
  std::uint32_t factor_of_v(std::uint32_t n) const;
  // An element of q that a weight of the sum is made of; 0: not found.
  std::uint32_t q_of(std::uint32_t n) const;
  // Whether the sum has the keys that the row sees, and its own row sees others.
  bool has_keys_of_one(const Term& sum, std::uint32_t row) const;
  // "o[i] = pair;": where pair was made.
  void suggest_stored_name(std::uint32_t store, const std::string& why);
  // On the way of a sum of v the line that takes a number of which another line makes another sum.
  void suggest_shared_operand(std::uint32_t n);
  // Around the line of a number, loops in which something is subtracted from a real variable that they never change: where
  // the step ends.
  void suggest_unkept(std::uint32_t n);
  // Whether o is right there.
  bool is_right_there(std::uint32_t row, unsigned column) const;
  // On the way of a sum of v the lines by which threads took it from each other through memory, the last first. Whether
  // the last thread took it from where it stores it itself: then who handed it on had another column.
  bool suggest_handovers(const Cause& cause);
  // Of a number that nobody takes the lines of its loop that assign another one to its variable.
  void suggest_overwritten(std::uint32_t n);
  // l lacks keys.
  void suspect_sum_of_weights(const Cause& cause);
  // The lines that read what other threads stored of their sums, where nobody reads the one that has the key. False: it is
  // read, or was not stored.
  bool suggest_left_store(std::uint32_t sum, unsigned key);
  // Keys that have a weight and are lost on the way to o.
  bool suspect_lost(const Cause& cause, unsigned key);
  // At the line of a sum the exponentials by which it may be multiplied.
  void suggest_factor_there(std::uint32_t s);
  // Where others were read that the same line stored.
  void suggest_readers(std::uint32_t stored);
  Way way_of(std::uint32_t row, unsigned key);
  // A key that did come through, of the same or another row.
  std::optional<Way> way_of_another(std::uint32_t row, const std::vector<unsigned>& not_these);
  // Whether threads that never came to the site came past this condition, to other lines behind it.
  bool is_passed_without(std::uint32_t s, const Condition& condition);
  // Whether it was decided before any loop over keys around a number: q was loaded under it as well, outside of that.
  bool is_of_row(std::uint32_t n, const Condition& condition);
  // The loops around a sum over keys: those at the tail of all keys are cut by the outer one.
  void suggest_loops(std::uint32_t s, const std::vector<unsigned>& keys, bool skip_columns,
                     bool lacks, const std::string& why);
  // Whether its thread passed n's line more than once for one score: the innermost loop goes over columns.
  bool sums_columns(std::uint32_t n) const;
  // Whether the first key that the row sees lacks, and not the last.
  bool lacks_first_keys(const Cause& cause) const;
  // Where functions return, by whose answer a line runs or not, and what they compute for that: the last first.
  void suggest_tests_of_calls(std::uint32_t s, const std::string& why);
  // Whether what lacks are the keys behind the query's own, as if a causal mask hid them.
  bool begin_behind_query(const Cause& cause) const;
  void suspect_missing(const Cause& cause);
  // Where the last keys lack: a limit that is a quotient which nothing rounds up.
  void suspect_rounded_down(const Cause& cause);
  // A mask that stores a number to where the scores of other keys are stored: what decides about it.
  bool stores_of_inputs(std::uint32_t site) const;
  void suggest_stored_instead(const Cause& cause, unsigned key);
  // Of first keys whose k is not loaded either: the loops around both.
  void suggest_loops_of_loads(std::uint32_t s, const std::string& why);
  // Of a condition that is one of several, "if (a || b)", what makes each.
  void suggest_flags(std::uint32_t s, const Condition& condition, const std::string& why);
  // What is compared at a mask that is right for another row, whose numbers are made at the same line.
  void suggest_compared(std::uint32_t site, const Cause& cause);
  // Whether the row, and this other one, see some keys and not others at the same ends.
  bool is_masked_alike(std::uint32_t row, std::uint32_t other) const;
  // A maximum of weights where a sum belongs, which loses the key.
  void suspect_chosen_weight(std::uint32_t row, unsigned key);
  // Where a rescaling factor is 0 since the maximum of the last step is still none.
  void suggest_end_of_loop(std::uint32_t factor);
  // 1 / l that is not of the l of this sum.
  void suggest_wrong_inverse(std::uint32_t n);
  // Exponentials of scores of which nothing was subtracted, where a sum is relative to another number than lse is.
  void suggest_bare_exponentials(std::uint32_t row);
  // The line behind the one that made a number, or behind the loop around it, or the call.
  void suggest_behind(std::uint32_t made, const std::string& why);
  // Loads of v of which nothing is made, and what adds up l behind them.
  void suggest_idle_v(std::uint32_t row);
  // Where in a step of a loop the innermost statement ends that uses the variable last, from that line on.
  void suggest_end_of_use(const ValueSite& at, const Statement& step, int line,
                          const std::string& name);
  // A maximum that stays none in every step of a loop, since nothing keeps it: where the step ends. Says so; empty: there is none.
  std::string suggest_never_kept();
  // Guards within a loop that let another row of the block take the key: the loops come by it.
  void suggest_guards_of_row(std::uint32_t at, unsigned key, std::uint32_t row,
                             const std::string& why);
  // Choices between the lines that make a score and its weight, where neither a mask nor a condition is known.
  void suggest_choices_to_weight(const Way& way, bool of_threads, const std::string& why);
  // Where o is a constant: what made the sum wrong on which that depends, as l of "l > 0 ? o / l : 0".
  void suspect_tested_sum(const Cause& cause);
  // Where no key has a weight: what would have made one.
  void suspect_what_never_ran();
  // As last_of_q_and_k(), where o depends on something.
  std::uint32_t last_followed() const;
  // What would have taken a weight further, and never ran.
  void suggest_what_never_took(std::uint32_t weight);
  // What masks a key of the row; 0: nothing.
  std::uint32_t masks_others(std::uint32_t row) const;
  // Where a helper is given what a condition of it compares: the call.
  void suggest_given_limit(std::uint32_t site, const Condition& condition, const std::string& why);
  // The guards of a number of the row that may let one key through and not another.
  std::vector<Condition> conditions_of_keys(std::uint32_t n, std::uint32_t row) const;
  // Whether threads of a block make the row's scores at one place, each of other keys.
  bool is_of_threads(std::uint32_t score, std::uint32_t row) const;
  void suspect_extra(const Cause& cause);

  const std::vector<OutputElement>& x_elements;
  bool x_misplaced;
  std::unordered_map<std::uint32_t, std::vector<Way>> x_ways;
};

}  // namespace attn_diag::lines
