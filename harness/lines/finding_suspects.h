// The lines that the checker names: of races, of memory that nobody wrote, of what is out of bounds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attn_diag/harness/host/check.h"
#include "harness/lines/number_suspects.h"

namespace attn_diag::lines {

// What a launch may be suspected of.
inline constexpr const char* kSizeAtLaunch = "says how large dynamic shared memory is";
inline constexpr const char* kBlocksAtLaunch = "may launch too few blocks";

// {30, 32} of "sQ[30][32]".
std::vector<long> indices_of(const std::string& element);
// Whether what was accessed is the one behind the last.
bool is_one_past(const host::CheckFinding& finding);

class FindingSuspects : public NumberSuspects {
 public:
  FindingSuspects(const Terms& terms, const std::vector<OutputElement>& elements,
                  LineDivergence& out)
      : NumberSuspects(terms, out) {
    note_heads(elements);
  }

  // Looks at errors alone; where there are none and the result `moves`, at races that are right only while a warp
  // stays converged. Says whether any of them has a line; `what` is then the first of them.
  // `late_copies`: the result is right where asynchronous copies land as they are issued, so that a copy is read too
  // early, and no index is at fault.
  bool suspect(host::CheckReport report, bool moves = false, bool late_copies = false);

 private:
  static bool same_file(const std::string& a,
                        const std::string& b);  // by name, in whichever folder
  // By the names that the watch build has for them: "./tile.cuh" is what a compiler in another folder called it.
  void name_files(std::vector<host::SourcePlace>& places) const;
  std::string known_file(const std::string& file) const;
  bool has(host::CheckKind kind) const;
  // The line of an access; before that of a helper, which is given the address, the lines that call it.
  void suspect_access(const host::CheckAccess& access, const std::string& array,
                      const std::string& why);
  std::vector<std::uint32_t> sites_of(const host::CheckAccess& access) const;
  // The line that computes the one index that lies outside, where the access only names it: x of "tile[y][x]".
  void suspect_outer_index(const host::CheckFinding& finding);
  // Of an address that no load or store goes by, as that of an asynchronous copy: the lines that compute it, by their
  // names, the nearest first.
  void suspect_unseen_address(const host::CheckFinding& finding);
  // Where a thread can no more go on within a helper, as one that waits by inline assembly: the calls that led there, what
  // they are given, and the loops and conditions around them.
  void suspect_stop(const host::CheckFinding& finding);
  // Of what does not end: the loops around where it goes on, innermost first.
  void suggest_loops_around(const std::vector<host::SourcePlace>& places);
  // Whether a collective of a helper was called with a mask that the helper was not given as an integer.
  bool is_own_mask(const host::CheckFinding& finding);
  // Of the variables that a line uses those to which a line above gives their value.
  std::vector<std::string> names_made_above(const host::SourcePlace& at, int line);
  // The lines that compute these, and what those are made of, the nearest first; loops come last.
  void suggest_makers_above(const host::SourcePlace& at, const std::vector<std::string>& names,
                            const std::string& why);
  // What the index of an access is made of, where its own line only names it: "cache[to]".
  void suspect_subscript(const host::CheckFinding& finding);
  // Whether two threads of a block store to one place by an index that the line of the store computes itself.
  bool computes_index(const host::CheckFinding& finding);
  // What was made elsewhere of an access whose own line computes nothing.
  void suspect_makers(const host::CheckAccess& access, const std::string& array);
  // Where several lines go out of bounds: what all of them depend on.
  void suspect_shared_cause();
  // Loops that go one step too far, where an access is right behind an array.
  void suspect_last_step(const host::CheckFinding& finding);
  // Whether the index that lies outside is moved by a number on the line of the access.
  bool is_offset_there(const host::CheckFinding& finding);
  // A loop whose limit is computed in its header, where the index is the one behind the last of an array.
  void suspect_computed_end(const host::CheckFinding& finding);
  // The mask of such an access, where a line makes a block of numbers at once.
  void suspect_mask(const host::CheckFinding& finding);
  // Where a launch says how large dynamic shared memory is.
  void suggest_size_at_launch(const host::CheckFinding& finding);
  // What that line depends on: of an index of the array itself before others.
  void suspect_site(const host::CheckAccess& access, const std::string& array, bool indices_first);
  // What is copied to a place that is read: what either index is made of.
  void suspect_stage(const host::CheckFinding& copy);
  // Copies to what another copy still writes, without a barrier between the two: by a wrong place, not by a wait.
  void suspect_copies_over(const host::CheckFinding& copy);
  static bool is_copy_over(const host::CheckFinding& copy);
  // Of a barrier object that a thread initialises while another arrives at it.
  void suspect_unpublished_barrier(const host::CheckFinding& race);
  // The wait above a copy in the same loop.
  void suggest_wait_in_loop(const host::CheckFinding& copy);
  void suggest_copy_over(const host::SourcePlace& at, const std::string& array);
  // Whether another copy of the same group is read in time: then it is no wait that is missing.
  bool is_late_alone(const host::CheckFinding& copy);
  bool multiplies_q_by_v() const;
  // The waits that may leave a copy in flight which is read too early, and what issues it.
  void suspect_waits(const host::CheckFinding& early);
  // Where no wait is between a copy and a read: the barrier before the read, else the statement that it is in.
  void suggest_lack_of_wait(const host::SourcePlace& read, int copy);
  // Two lines store to the same bytes by the names of two parts of one shared array.
  void suspect_overlap_of(const host::CheckFinding& race);
  // Of a store and a load between the same barriers of the block, with a barrier of some threads between the lines: that.
  void suspect_named_barrier();
  // Between which lines threads should have waited for each other, where that explains all races. Says whether it does.
  bool suspect_missing_barrier();
  // Another block reads what one stored, in whatever order: what says that it is there. Says whether that explains all.
  bool suspect_unpublished();
  struct Gap {
    std::string file;
    int begin = 0, end = 0;  // behind this line, or before that one
    int last = 0;            // before this one it would still do
    bool goes_round =
        false;  // there is a barrier between them: it is missing on the way from the end to the begin
    bool of_one_line = false;  // which one step of a loop reads and the next one stores to
    bool of_copy = false;      // one of the two is an asynchronous copy
  };
  std::optional<Gap> gap_of(const host::CheckFinding& race);
  // The same where what is stored in that loop is read behind it, and other steps than the last are of one warp alone.
  std::optional<Gap> gap_of_steps_before(const Gap& behind, const std::string& array);
  // Between the steps of a loop without a barrier in which threads read what others stored at the same line.
  std::optional<Gap> gap_of_step(const std::string& file, int line);
  // From where a thread waits for its own copies to where another accesses what it copied.
  std::optional<Gap> gap_behind_wait(const host::CheckFinding& race);
  // Between a read of what a copy of another thread writes and that copy.
  std::optional<Gap> gap_of_copy(const std::string& file, int read, int copy, bool of_block);
  // On the way from one line to another; none: a barrier lies on it.
  std::optional<Gap> gap_from(const std::string& file, int from, int to, bool of_block);
  // `among_others`: there are other lines that may be the ones. `of_block`: the two threads are of different warps.
  std::optional<Gap> gap_between(const std::string& file, int a, int b, bool among_others,
                                 bool of_block);
  // Where an access of one race is in the kernel: its own line, or those that call its function.
  std::vector<host::SourcePlace> places_in_kernel(const host::CheckAccess& access,
                                                  const host::CheckAccess& other) const;
  // The lines of the kernel that lead to an access within what it calls.
  std::vector<host::SourcePlace> calls_in_kernel(const host::CheckAccess& access) const;
  // Whether a read of what a copy still writes is a race of the same lines as well: then no wait is missing.
  bool is_race_as_well(const host::CheckFinding& copy) const;
  // Whether a thread reads what it copies itself: no barrier keeps it from that, only a wait.
  static bool reads_own_copy(const host::CheckFinding& copy);
  // Where the outermost statement around a line begins or ends that is not around the other one.
  int statement_of(const std::string& file, int line, int other, bool its_end);
  // The guard of an access that only indices beyond a limit pass.
  void suspect_guard(const host::CheckFinding& finding);
  // Where an array is declared to which the line that reads it adds, and nothing was stored before: "float sum[4];".
  void suspect_unset(const host::CheckFinding& read);
  // Of an array of a thread's own that no line assigns to, as one of registers that assembly fills: the lines above that name it.
  void suspect_registers(const host::CheckFinding& read);
  // Where lanes return that a shuffle wants: what makes the condition of that by the lane, and the line that returns.
  void suspect_divided_warp(const host::CheckFinding& shuffle);
  // What says how far the loop goes that a store is in.
  void suggest_loop_of_store(const std::string& file, int line, const std::string& name);
  // "if (tile + 1 < tiles) fetch(tile + 1);": what decides whether a lambda is called that the line is in.
  void suggest_calls_of_lambda(const std::string& file, int line);
  // Where an index that leaves its array is what a lambda is given: the calls that compute it.
  void suspect_given_index(const host::CheckFinding& access);
  // Where threads wait at a pipeline in vain: what made it.
  void suggest_makers_of_barrier(const host::CheckAccess& waits);
  // Of an access that the graph does not have, as one of integers, the nearest condition around.
  void suggest_guard_by_text(const host::CheckAccess& access);
  // Where no element of an input is loaded, what moves it on to the block's part.
  void suspect_base(const host::CheckFinding& access);
  // Where q is read by the name of k: the call that hands it on.
  void suspect_other_input(const host::CheckFinding& access);
  // Where no line stores to an array at all: the function that is given it and does nothing with it, or the stores to what
  // is declared beside it.
  void suspect_never_stored(const host::CheckFinding& read);
  // Functions that are given it and do nothing with it: where they end.
  void suggest_ends_without(const host::SourcePlace& at, const std::string& name);
  // The first store to an array that is declared beside this one.
  void suggest_stores_beside(const host::SourcePlace& at, const std::string& name, int declared);
  // Where nothing of a shared array is stored above the barrier before its read: that barrier.
  void suggest_barrier_before(const host::CheckFinding& read);
  // "copy(&to.v[0][0], from + at, bytes);" of a member that is read: what the copy is given.
  void suggest_copies_to_members(const host::CheckAccess& read);
  // "to_k = address(&k[i]);", and nothing takes to_k: what takes the address beside it.
  void suggest_taker_beside(const std::string& file, int line);
  // The stores to an array, not the read: which element they leave out.
  void suspect_left_out(const host::CheckFinding& read);
  // Launches of the kernels that store it, whose number of blocks is rounded down.
  void suggest_few_blocks(const std::vector<std::uint32_t>& stores);
  // The same, or who read it should not have: what is written of the array says which is likelier.
  void suspect_reader_or_writers(const host::CheckFinding& read);
  void suspect_stores(const host::CheckFinding& read);
  std::vector<std::uint32_t> stores_before(const host::CheckFinding& read);
  // Whether a read of what nobody wrote is where no row of q, k or v goes, or in another part of an array than the one
  // that its line names: then its own index is wrong.
  bool strays(const host::CheckFinding& read);
  // Whether what nobody wrote are the rows from one on: the loops that should store them end too early.
  bool ends_early(const host::CheckFinding& read) const;
  void suspect_ranges(const host::CheckFinding& read);
  // The array, and what the code calls it that reads it where no store goes by the array's own name.
  std::vector<std::string> names_of(const host::CheckFinding& finding);
  // Whether what is accessed there is a pointer that a line makes of the array.
  bool points_into(std::uint32_t site, const std::string& array);
  // Two threads or blocks store to one place: the variables that should keep them apart.
  void suspect_shared_place(const host::CheckFinding& finding);
  // Where an index goes behind an array: the limit of a loop that nothing keeps below a length.
  void suspect_unclamped(const host::CheckFinding& finding);
  // Variables of which an access without a fault makes its index as well come after those of which none does, from the
  // suspect of this number on.
  void note_what_is_right_elsewhere();
  void spare_what_is_right_elsewhere(std::size_t from);
  // What the loops around an access go up to.
  void suspect_limits(const host::CheckAccess& access);
  // What a loop is limited by, where a line computes it.
  void suggest_limits(std::uint32_t s, const Condition& loop, const std::string& why);
  // What the limit of a loop is made of where the compiler knows it, so that no number of it is seen.
  void suggest_known_limit(std::uint32_t s, const Condition& loop);
  // Lambdas of the function that a line calls, as for the size of a copy.
  void suggest_lambdas(std::uint32_t site, const std::string& why);
  // The loop whose variable is the only index of a store.
  void suggest_range_of_store(std::uint32_t s);
  // Whether the index there is made of what the loop tests, as far as that is known.
  bool is_of_index(std::uint32_t s, const Condition& loop) const;
  // Of stores that never ran the nearest condition.
  void suggest_what_keeps_from(const std::vector<std::uint32_t>& stores);
  // Where no store to the array is known, as those of copies within the executor: the lines that may do it.
  void suggest_stores_by_text(const std::vector<std::string>& names);
  // Where threads return before a barrier, which then store nothing of what is read behind it.
  void suspect_early_return(const host::CheckFinding& finding);

  using Variable = std::tuple<std::string, std::string, int>;  // as key_of() has it
  std::set<std::pair<std::string, int>> x_accused;             // lines of faults
  std::set<Variable> x_right, x_right_limits;
  bool x_stores_known = false;
  std::map<std::uint32_t, std::set<std::uint32_t>> x_stores_read;  // by the site of a load
  std::vector<const host::CheckFinding*>
      x_latent;  // races that order alone keeps from being errors
  std::vector<const host::CheckFinding*> x_errors;  // of the report, those out of bounds first
};

}  // namespace attn_diag::lines
