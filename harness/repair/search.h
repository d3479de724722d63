// Tries edits: many in one library first, then those that need one of their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/repair/repair.h"
#include "harness/repair/suspects.h"
#include "harness/repair/trials.h"
#include "harness/repair/workshop.h"
#include "harness/run/jobs.h"

namespace attn_diag::repair {

// What an edit does in the trials.
struct TrialsAnswer {
  std::size_t agreed = 0, disagreed = 0;
  bool sound = true;          // all that are no other cases agree
  int failed = -1;            // the first that did not agree
  std::size_t left_out = 0;   // that launch what the library was not built for
  std::vector<bool> refused;  // by trial: the user's kernel does not take it either
  std::string what;
};

class Search {
 public:
  using Clock = std::chrono::steady_clock;

  // What is wrong with the user's library. `trial`: the one that edits are tried on first; it fails without an edit.
  struct Wrong {
    std::string spec;  // of the library
    std::size_t trial = 0;
    std::int64_t elements = -1;  // that are wrong; -1: not counted
    double seconds = 0;          // of the processor that it takes; 0: not known, it does not end
    Suspects suspects;           // as far as they are known
    bool check_has_run = false;
    std::vector<std::string> kernels;  // that it launches in that trial; empty: not known
  };
  Search(const Program& program, const std::vector<Edit>& edits, const Workshop& workshop,
         const std::vector<Trial>& trials, const Wrong& wrong, const std::string& kernel,
         const RepairOptions& options, Clock::time_point deadline);

  void run();
  const Suspects& suspects() const { return x_wrong.suspects; }

  // Those under which everything agrees, smallest first: in a library of their own, as far as that is asked for.
  const std::vector<int>& verified() const { return x_verified; }
  bool is_built_by_itself(int edit) const { return x_built_by_itself.contains(edit); }
  // Others that make every trial agree, as one of many in a library.
  std::vector<int> others() const;
  int tried() const { return x_tried; }
  int built() const { return x_built; }
  int not_possible() const { return x_not_possible; }
  bool out_of_time() const { return x_out_of_time; }
  // The edit that makes the most trials agree, and the first trial that it does not.
  struct Near {
    int edit = -1;
    std::size_t agreed = 0;
    std::string words, what;  // of the trial, and of why not
  };
  const Near& near() const { return x_near; }
  // Whether a trial told nothing, since the user's kernel does not take it.
  bool refused(std::size_t trial) const { return x_refused[trial]; }
  // An edit under which no more than half of the wrong elements are left, the best of its line.
  struct Helpful {
    int edit = -1;
    std::int64_t left = 0;
    // Where all trials of the case itself agree: how many of all do, of how many, and the first that does not; empty: the
    // others were not run yet.
    std::size_t agreed = 0, of = 0;
    std::string but;
  };
  std::vector<Helpful> helpful()
      const;  // those under which the most agree first, then those that leave the fewest

 private:
  enum class Task {
    kLines,
    kCheck,
    kBuild,
    kControl,
    kScreen,
    kSlowScreen,
    kTrials,
    kScreenAlone,
    kVerify
  };
  struct Started {
    Task task = Task::kBuild;
    int library = -1, edit = -1, number = 0;
  };
  struct Library {
    int number = 0;
    Schema schema;
    std::vector<int> order;     // its numbers, as they are to be tried
    std::size_t next = 0;       // of these
    bool ready = false;         // built, and wrong without an edit
    std::vector<bool> reached;  // by the first number of a place: whether the run comes by
  };

  void set_order();
  void start_looking();
  bool next_task();
  bool start_verification();
  bool start_trials();
  bool start_screening();
  bool start_slow_screening();
  void screen(const Started& what, double processor_seconds);
  bool start_library();
  bool start_whole();
  bool start_alone();
  void build_alone(int edit);
  void start(Started what, const std::function<Bytes()>& work, double seconds,
             double processor_seconds = 0);

  void handle(const Started& what, const Jobs::Result& result);
  void screened(const Started& what, const Jobs::Result& result);
  void control_done(Library& library, const Jobs::Result& result);
  void library_built(int index, const Jobs::Result& result);
  void library_refused(Library& library, const std::string& messages);
  void trials_done(const Started& what, const Jobs::Result& result);
  void found(int edit);
  void wait_alone(int edit);
  void note_refused(const TrialsAnswer& answer);
  void note_sound(int edit, std::size_t agreed, std::size_t of, const std::string& but);
  void note_partial(int edit, const TrialsAnswer& answer);
  void verification_done(const Started& what, const Jobs::Result& result);

  std::string spec(int number, bool instrumented) const;
  double seconds_left() const;
  double trials_seconds() const;
  bool better(int a, int b) const;  // the smaller edit
  std::vector<int>::iterator smallest(std::vector<int>& edits) const;
  bool is_worth_more(int edit) const;
  bool likelier_waits(int edit) const;
  bool enough() const;

  const Program& x_program;
  const std::vector<Edit>& x_edits;
  const Workshop& x_workshop;
  const std::vector<Trial>& x_trials;
  Wrong x_wrong;
  std::size_t x_screen;
  double x_screen_seconds;
  std::string x_kernel;
  const RepairOptions& x_options;
  Clock::time_point x_deadline, x_begin;
  Jobs x_jobs;

  std::vector<int> x_rank;                  // of each edit: its place in the order
  std::deque<std::vector<int>> x_to_build;  // groups of edits
  std::deque<int> x_alone;                  // that need a library of their own
  std::vector<int> x_whole;  // under which all agrees that a library of few kernels can say
  std::deque<Library> x_libraries;
  std::map<int, Started> x_started;
  struct Survivor {
    int edit = 0, library = -1;
  };
  std::deque<Started> x_slow;        // screenings that were stopped
  std::deque<Survivor> x_survivors;  // of the screening
  std::vector<int> x_hopeful;        // under which all trials agree, not yet verified
  std::vector<int> x_verified;
  std::set<int> x_built_by_itself;
  std::vector<int> x_agreed;
  std::optional<Clock::time_point> x_first_verified;
  Near x_near;
  std::map<std::pair<int, int>, Helpful> x_helpful;                       // by file and line
  std::map<std::tuple<int, std::size_t, std::size_t>, int> x_refused_at;  // by file and place
  int x_next_number = 1;
  int x_tried = 0, x_built = 0, x_not_possible = 0, x_building = 0, x_verifying = 0;
  int x_looking = 0;        // for suspects
  std::size_t x_early = 0;  // that were built alone before the second library
  bool x_out_of_time = false;
  std::vector<bool> x_refused;  // by trial
};

}  // namespace attn_diag::repair
