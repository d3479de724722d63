// The lines that may have made a number that has no meaning in attention.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "harness/lines/causes.h"
#include "harness/lines/suspects.h"

namespace attn_diag::lines {

inline constexpr double kNoMaximum = 1e4;  // of scores

class NumberSuspects : public Suspects {
 public:
  static const char* ill_text(Ill why);
  // Whether numbers of the inputs were lost from sight before they became scores: no line is known to be wrong.
  bool lost() const { return x_lost; }

 protected:
  using Suspects::Suspects;

  // Two operands that do not fit together, each with the way it came.
  void suggest_pair(std::uint32_t at, std::uint32_t a, std::uint32_t b, std::uint32_t row, Ill ill);
  // What a store only names as its index: "kept[at] = x;". `of_thread`: what only says which thread it is, or all else.
  void suggest_index_of_store(std::uint32_t site, bool of_thread);
  // Where a block takes k or v from what another kernel stored, and has none of the head of the row: what makes the head.
  void suggest_head_of_block(std::uint32_t n, std::uint32_t operand, std::uint32_t row,
                             const std::string& why);
  // Two elements are multiplied again and again, and one of them never moves: what reads that.
  // A product of matrices that adds to a sum of another column of v: what loaded that, and where it was stored.
  void suspect_addend(std::uint32_t n);
  void suggest_unmoved(std::uint32_t at, std::uint32_t a, std::uint32_t b);
  // Which operand of a product is likelier at fault. That of a matrix product that has elements of several rows, or on the
  // right columns, where there should be one; else the one that does not go on in equal steps, from pair to pair or each
  // time that its thread comes there, where the other does.
  enum class Strays { kNothing, kLeft, kRight };
  Strays strays(std::uint32_t at, Ill ill) const;
  // The key of k, of v or of a weight, if it is one alone.
  std::optional<unsigned> only_key_of(const Term& term) const;
  // Where a load fills a fragment of wmma: the type of that.
  void suggest_fragment(std::uint32_t load);
  // Whether most pairs of numbers that the thread multiplies at that line belong together.
  bool fits_mostly(std::uint32_t at, Ill ill) const;
  // The same by what another product of matrices makes of either operand, where nothing is wrong with it.
  Strays used_rightly(std::uint32_t at) const;
  // Whether another line goes wrong with the same operand, in the same thread.
  bool is_wrong_elsewhere(std::uint32_t at, std::uint32_t operand) const;
  // The line by which threads take a weight from another lane's registers, and what makes its score there.
  void suggest_taken(std::uint32_t at, std::uint32_t weight);
  // v that was added as it is, where sums of weights times v are added as well.
  void suggest_bare_v(std::uint32_t n);
  // What a number is made of multiplies q, or a weight, with a number from memory, where k or v stands for others.
  void suspect_foreign_factor(const Cause& cause);
  // Whole rows multiply what is no k at this line as well, and something is added that hides it. False: they do not.
  bool suggest_mask_of_others(std::uint32_t at, std::uint32_t row);
  void suspect_ill(const Cause& cause);
  // Whether several blocks read the same stored score or sum at this line: each has rows of its own.
  bool is_read_by_blocks(std::uint32_t load) const;
  // Of a load of k or v of another head, where q is of the right one: what depends on the block.
  void suggest_heads_of_load(std::uint32_t loader, std::uint32_t row);
  // Whether the first product that the thread makes there is wrong as well, when loops add nothing yet.
  bool is_wrong_from_the_first(std::uint32_t at) const;
  // By how many keys, or columns, the two operands of a line are apart, as far as that is the same in every step that a
  // thread takes: what loops add is right then.
  enum class Shift { kNone, kOfSteps, kOfThreads, kOfBlock };  // what it depends on
  Shift shift_of(std::uint32_t at, Ill ill) const;
  // What is computed of the block's index alone, before any loop, for the place of a load.
  void suggest_base_of(std::uint32_t operand, const std::string& why);
  // A load, and what makes its address beside it, in the same step of a loop.
  void suggest_with_own_address(std::uint32_t load, const std::string& why);
  // Where two elements of different columns were loaded before, by places that the threads made: those.
  void suggest_places_of_threads(std::uint32_t at, std::uint32_t a, std::uint32_t b,
                                 const std::string& why);
  // Where the last suspect is a shuffle that moves a maximum down to the first lane: the end of its loop.
  void suggest_lack_of_broadcast();
  // Where one branch of an "if" stores to an array and to another, and the other branch to that alone.
  void suggest_other_branch(const std::string& file, const std::string& function,
                            const std::string& name);
  // Of an operand that is loaded the lines outside of loops that compute where, by the thread: the nearest first.
  void suggest_lanes_before_loops(std::uint32_t operand, const std::string& why);
  // The loops around a line that sums, those first that do not count the sums themselves.
  void suggest_conditions_of_sum(std::uint32_t s, const std::string& why);
  // The first exponential that a weight, or a sum of such, is made of. 0: none is found.
  std::uint32_t exponential_in(std::uint32_t n, int most = 64) const;
  // The weight that `at` multiplies with v is of another row or key than belongs there, which is v's: who read its score,
  // who stored that. `strays`: v's key is known to be the right one.
  void suspect_misplaced_score(std::uint32_t at, std::uint32_t weight, std::uint32_t v,
                               std::uint32_t row, bool strays);
  // Whether the maximum that a part is relative to is smaller than that of all so far, which the sum before is rescaled to.
  bool is_of_own_maximum(std::uint32_t factor, std::uint32_t part) const;
  // Whether no key of the row came further than `n` before: `weight` is an operand.
  bool is_first_step(std::uint32_t row, std::uint32_t n, std::uint32_t weight) const;
  // Of two operands of different rows, where the one that is not of `row` came from another thread.
  void suspect_other_row(std::uint32_t a, std::uint32_t b, std::uint32_t row);
  // What stores numbers over scores of the row that nobody has read yet: a mask of them. Then masks that never ran.
  void suggest_stored_masks(std::uint32_t row, std::uint32_t score, const std::string& why);
  // Conditions under which what the site makes or stores becomes minus infinity, by the text of its function.
  void suggest_masks_by_text(std::uint32_t site, const std::string& why, const std::string& made);
  // Those lines of the site's function, and what they go by.
  void suggest_masks(const host::ValueSite& at, const std::vector<int>& lines,
                     const std::string& why, const std::string& made);
  // The same for what the exponential is taken of, by the text of its line.
  void suggest_masks_of_exponential(std::uint32_t exponential, const std::string& why);
  // Of a shuffle that adds parts of scores of different keys, or rows: the loop over its distances.
  void suggest_distance_of_lanes(std::uint32_t site);
  // Whether each key that the row sees has a weight.
  bool has_all_weights(std::uint32_t row) const;
  // A line that loads elements of k or v loads what nobody wrote, too, and every key has its weight: who lets it?
  void suggest_guards_of_key(std::uint32_t site);
  // q was multiplied by what is no element of k, beside all that are: memory behind the last key.
  void suspect_key_beyond(const Cause& cause, std::uint32_t a, std::uint32_t b);
  // What a line stores, where it is chosen by a line above: "x = visible ? s : none;".
  void suggest_choice_above(std::uint32_t site, const std::string& why);
  // Whether a site stores scores of the row, too.
  bool chooses_scores(std::uint32_t s, std::uint32_t row) const;
  void suggest_test(std::uint32_t s, const Condition& condition, const std::string& why);
  // What was computed before of what a condition names.
  void suggest_decided(std::uint32_t s, const Condition& condition, const std::string& why);
  // Loads of k or v that a mask kept from the key.
  void suspect_masked_loads(std::uint32_t row, unsigned key);
  // Where variables are never read: what stands behind the last of them, and should read it.
  void suggest_behind_unread();
  // Loads that a mask kept from the row of q.
  void suspect_masked_query(std::uint32_t row);
  // Loads of an input in masks: of the element a mask kept from `sites`.
  void suggest_masks(const std::set<std::uint32_t>& sites, const std::string& why);
  // A number that was made of what was not loaded, and went on as a score does: what should have masked it.
  void suggest_unmasked(std::uint32_t number);
  // The loads that may read the wrong input, where a product is not of an element of q and one of k.
  void suspect_input(std::uint32_t n, std::uint32_t a, std::uint32_t b);
  // A load from memory that has other rows than those beside it.
  void suspect_load_of_rows(std::uint32_t n, std::uint32_t a, std::uint32_t b);
  // Where l is a number that comes of no input.
  void suggest_last_weight(std::uint32_t row);
  bool divides_by_0(std::uint32_t n) const;
  // A divisor that comes of no number: what its array is given, "l[r] = sum;", and who stores it.
  void suggest_stored_divisor(std::uint32_t s);
  // Where a row has weights and no sum of all of them: what makes the largest sum, or a weight.
  void suggest_unsummed(std::uint32_t row);
  // Whole scores and sums of the row that nobody takes further, where what has no meaning stands in their place.
  void suspect_dropped_scores(const Cause& cause);
  // Where a thread made the score of a key first and again, and nobody that of another. 0: nowhere.
  std::pair<std::uint32_t, std::uint32_t> repeated_score(std::uint32_t row) const;
  // Where the row of k that a score is made of was copied from the input, if it was loaded from there; else 0.
  std::uint32_t copy_of_k(std::uint32_t score) const;
  // `copy`: of a row of k, to where that of another key belongs.
  void suggest_copied_again(std::uint32_t copy, std::uint32_t row);
  void suggest_repeated_score(std::uint32_t row);
  void suspect_twice(const Cause& cause, std::uint32_t a, std::uint32_t b);
  // Whether it is an exponential by which a sum of weights is multiplied, as exp(maximum so far - maximum) is.
  bool is_rescaling_factor(std::uint32_t n) const;
  // Where a sum adds such a factor as if it were a weight.
  void suggest_added_factor(std::uint32_t n);
  // The store of the score of which an exponential is; 0: it was not stored.
  std::uint32_t stored_score(std::uint32_t exponential) const;
  // What keeps a score from being stored anew, where a sum has that of an earlier step again.
  void suggest_left_there(std::uint32_t sum);
  // A sum that begins with one of the parts that it adds.
  void suggest_first_value(const Cause& cause, std::uint32_t a, std::uint32_t b);
  // Where a part that was only moved and rescaled since was summed.
  std::uint32_t summed_part(std::uint32_t part) const;
  // Two threads made the weight of one key: the guards by which each should have taken its own.
  void suggest_same_key(std::uint32_t a, std::uint32_t b);
  // Whether a sum has a number in it: that very number, not one of the same worth that was computed beside it.
  bool is_summand_of(std::uint32_t sum, std::uint32_t summand) const;
  // Where the parts that a line puts together were made, before that line; and whether another thread made an
  // overlapping part of the same score there.
  std::uint32_t leaf_of(std::uint32_t s, std::uint32_t operand) const;
  bool is_shared(std::uint32_t leaf) const;
  // q times v, where others multiply q and k: the array of k was left behind.
  bool is_overrun(std::uint32_t n, std::uint32_t a, std::uint32_t b) const;
  // Whether the line of a sum added the same weight in an earlier step of its thread.
  bool added_there_before(std::uint32_t n) const;
  // The part of a shared array that a pointer is into, by the name of that part where it is made, and the array; with
  // pointers that threads have for themselves, or that loops move, what those are made of. Empty: not known.
  struct SharedPart {
    std::string array;
    NamedLine part;
  };
  SharedPart shared_part(const std::string& file, int line, std::string name);
  bool is_of_thread(const std::string& name, int line) const;
  // Where two parts of one array have bytes in common: the lines that say where they begin, the later one first.
  void suggest_overlap(const std::string& file, const SharedPart& a, const SharedPart& b);
  // Stores by the name of one part that replaced what nobody had read of another.
  void suspect_replaced_part();
  // A variable that is exponentiated, and assigned between a score and that line.
  void suggest_taken_for_score(std::uint32_t score);
  // Where q and k were loaded, and no score or weight was seen: the last of their numbers that was; what is made of it is
  // not followed. 0: that is not so.
  std::uint32_t last_of_q_and_k() const;
  // Suggests its line, and says what it means.
  std::string tell_lost(std::uint32_t last);
  // Sums of v whose factors are no weights.
  bool suspect_factor_of_v(const Cause& cause, std::uint32_t a, std::uint32_t b);
  // Whether an operand of n is k or q where v belongs, or v where k or q do, as what it is multiplied by says.
  bool is_other_input(std::uint32_t n, std::uint32_t operand, std::uint32_t by) const;
  void suggest_row_of_load(std::uint32_t n);
  void suggest_moves_with_indices(std::uint32_t n, const std::string& why);
  // Where others have a weight and this one has not: what made theirs is not done for it.
  void suggest_what_others_do(std::uint32_t n, std::uint32_t a, std::uint32_t b);
  // Where the operands of a node that are numbers, or a number times something, were chosen, while a score or a
  // weight was at hand.
  void suggest_chosen(std::uint32_t user, const std::vector<std::uint32_t>& operands);
  // As suggest_chosen(), where a branch chose: by what the source says, "p = key < n ? exp(s - m) : 1.f".
  void suggest_written_choices(std::uint32_t user, std::uint32_t number);
  bool suggest_written_choice(std::uint32_t site, const std::string& name, double number);
  bool multiplies_element(std::uint32_t n) const;
  // Whether a line that stores to an array stores such a choice.
  bool suggest_stored_choice(const std::string& file, int line, double number);
  // A number where something of the inputs should be: a choice, or memory that holds it.
  void suggest_foreign(std::uint32_t n);
  // Where a number became what it is: back through operations on numbers that are no better.
  void suggest_origin(std::uint32_t n, const std::string& why);
  // An operand that is not finite; or not positive, where it should be.
  bool is_odd_operand(std::uint32_t n) const;
  void suggest_odd_operand(std::uint32_t n);
  // What the line of a number uses, beside the operands that are as they should be.
  void suggest_other_uses(std::uint32_t n, const std::vector<std::uint32_t>& operands);
  // Where the fragment that a product of matrices is added to was filled.
  void suggest_filled_fragment(std::uint32_t n);
  // The first NaN on the way of one.
  std::uint32_t nan_of(std::uint32_t n) const;
  bool is_0_by_0(std::uint32_t n) const;
  // NaN: memory that nobody wrote, or an operation on infinities.
  void suggest_nan(std::uint32_t n);
  // The same where the compiler knows it to be NaN, as exp(-inf - -inf) is: no score came in.
  bool suspect_constant_nan(std::uint32_t n);
  // A product with 0 of shared memory that was filled with it, as behind the last key: who stores there.
  void suggest_filled(std::uint32_t n);
  // The variable that holds the score of an exponent; empty: not known.
  std::string score_variable(std::uint32_t exponent) const;
  // Attention takes the larger of two scores, never the smaller.
  void suggest_minimum_of_scores();
  // What may have made a maximum none, infinite or larger than any score: a minimum, or a first value that is so, on
  // the way to this site.
  void suggest_odd_maxima(std::uint32_t from);
  // The same by names in the text, which lead through arrays that threads hand numbers on by.
  void suggest_odd_maxima_by_name(std::uint32_t from);
  // Whether a minimum is one of numbers, and not of indices.
  bool makes_numbers(std::uint32_t near, const NamedLine& at);
  // Whether the key's exponential is 0 or infinite because of what was subtracted; then says so.
  bool suspect_frame_of(std::uint32_t row, unsigned key);
  // A score where its exponential belongs.
  bool suspect_bare_score(const Cause& cause, std::uint32_t a, std::uint32_t b);
  // Whether the exponential n is of another base than others are, and the score is scaled for these.
  bool has_other_base(std::uint32_t score, std::uint32_t n) const;
  // Whether it puts a score together.
  bool is_sum_of_columns(std::uint32_t n) const;
  // Numbers that are added to scores, as a bias is.
  void suggest_shifts(std::uint32_t weight);
  // Where a score has no bias and should.
  void suggest_unbiased(std::uint32_t weight);
  // Another sum of the row, which is rescaled, where nothing rescales the one that n adds to.
  void suggest_beside_missing_rescale(std::uint32_t n, std::uint32_t before);
  // 0 for a score: of a key that is none, whose row of a tile is 0, or of a product that is lost.
  void suspect_no_score(std::uint32_t n, std::uint32_t row, const std::string& why);
  // Whether exponentials at this line are weights, in whichever thread.
  bool makes_weights(std::uint32_t site) const;
  // What the line tests is read from shared memory: the lines that put it there.
  void suggest_flags(const ValueSite& at, const std::string& why);
  // The exponential that the operand is, or is v times, if it is that of a number that comes of no input; else 0.
  std::uint32_t exponential_of_number(std::uint32_t operand) const;
  // Whether a condition of a line is the same in all steps of the loops around it, where one thread takes all keys of the
  // row: it cannot be what keeps some of them out.
  bool holds_for_all_keys(std::uint32_t at, const Condition& condition);
  // What decides how many keys come to the exponential of what is none.
  void suggest_conditions_of_end(std::uint32_t site, std::uint32_t row, const std::string& why);
  void suspect_scale(std::uint32_t score, std::uint32_t n, const std::string& why);
  void suggest_stores_to(const std::string& variable);
  // Where q, k and v are put.
  void suggest_stores_of_elements();
  void suggest_other_divisor(std::uint32_t sum);
  // Where a weight was multiplied with its own v before: how far the loop goes that takes it again for another key.
  void suggest_end_of_weights(std::uint32_t n, std::uint32_t weight);
  // The line that would rescale what n adds to, and never ran.
  void suggest_idle_rescale(std::uint32_t n);
  // A product with exp(x - x): the line that makes what was kept what is subtracted from it.
  void suggest_kept_too_early(std::uint32_t n);
  // A product with exp(before - maximum) of what is relative to that maximum already.
  void suspect_rescaled_again(std::uint32_t n);
  // A key's weight is relative to less than what was added before it is: its maximum does not know of those keys.
  void suggest_fallen_maximum(std::uint32_t before, std::uint32_t part);
  // Of a weight times a code of v: what multiplied it with a scale.
  // Where codes of an input are multiplied by what is the scale of some of them, and not of others.
  void suggest_odd_scales(unsigned buffer);
  void suggest_scale_of_code(std::uint32_t part);
  void suspect_frames(std::uint32_t n, std::uint32_t a, std::uint32_t b, const std::string& why);
  // A sum so far is rescaled by exp(kept - maximum), but it is not relative to what was kept: the lines that kept it.
  void suggest_kept_maximum(std::uint32_t factor, std::uint32_t sum);
  // The two parts of a product of matrices that are in different frames, and whether both are weights.
  std::tuple<std::uint32_t, std::uint32_t, bool> frames_of_product(std::uint32_t n) const;
  bool is_scaled(std::uint32_t n) const;
  // The node that rescales another sum at n's line, and any other sum; 0: none.
  std::uint32_t rescaled_for_others(std::uint32_t n, std::uint32_t before) const;
  // Whether another sum over the keys of a part was rescaled by the thread that adds the part as it is.
  bool rescaled_with(std::uint32_t n, std::uint32_t part) const;
  std::uint32_t rescaled_beside(std::uint32_t n) const;
  // What was subtracted in the exponent of a weight.
  void suggest_maximum(std::uint32_t n);
  // The function that makes what is subtracted in the exponent at this site: where lanes should come to have one maximum.
  void suggest_helper_of_maximum(std::uint32_t exponential);
  // What was subtracted of a score on the way to an exponent, as in "scale * (s - m)"; and where. 0: nothing is known.
  std::pair<std::uint32_t, std::uint32_t> subtracted(std::uint32_t exponent) const;
  // Where lanes put a number together, each taking another's part: the line, and the loop over lanes. In a butterfly
  // all lanes have the same in the end unless its loop leaves a step out: there the loop comes first.
  // `of_maximum`: only what is compared for a maximum, or is one.
  void suggest_shuffles(std::uint32_t n, const std::string& why, bool of_maximum = false);
  // Whether it was chosen for its size, of two scores.
  bool is_compared(std::uint32_t n) const;
  // Whether a maximum, or what only moves one, is among the numbers of a line.
  bool makes_maximum(std::uint32_t near, const NamedLine& at) const;
  // Whether the product that a score lacks was made where its thread made one that the score has.
  bool lost_in_thread(std::uint32_t lost, const Term& partial) const;
  // Whether its line adds up what lanes have, in a loop over lanes.
  bool is_summed_in_steps(std::uint32_t n);
  // A score that lacks columns.
  void suspect_partial(std::uint32_t score, std::uint32_t at, std::uint32_t row);

 private:
  bool x_lost = false;
};

}  // namespace attn_diag::lines
