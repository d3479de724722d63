// What a sweep is a sweep over: the flags that are lists.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/sweep/folder.h"
#include "harness/sweep/numbering.h"
#include "tools/attn_diag/flags.h"

namespace attn_diag::cli {

// The entries of one flag, and what each of them multiplies the cost of a case with.
struct Axis {
  const char* flag;
  std::string Flags::*member;
  std::vector<std::string> entries;
  std::vector<double> weights;
};

class SweepGrid {
 public:
  // Throws Error for entries that no flag of the kind takes, and for --random without a number.
  explicit SweepGrid(const Flags& flags);

  const sweep::Numbering& numbering() const { return x_numbering; }
  // The flags of one case, in which nothing is a list; nullopt: as Numbering::at.
  std::optional<Flags> flags_of(std::int64_t number, std::int64_t attempt = 0) const;
  // What its flags are where they are lists.
  std::vector<std::pair<std::string, std::string>> values_of(const Flags& one) const;
  // The rough cost of every case, in multiplications of the pipeline.
  std::vector<float> costs() const;
  // "kernel=fa1 seqlen=64"
  std::string text_of(const Flags& one) const;

 private:
  std::vector<Axis> x_axes;
  Flags x_flags;
  sweep::Numbering x_numbering;
};

// "1,4:16:*2" as {"1", "4", "8", "16"}; without ranges where the flag does not take numbers. Each entry once.
std::vector<std::string> expand_entries(const std::string& flag, const std::string& text,
                                        bool numbers);

// The flags that say what the cases are, for sweep.json, and back.
std::map<std::string, std::string> plan_flags(const Flags& flags);
void take_plan_flags(const std::map<std::string, std::string>& from, Flags& flags);

// How many are drawn; 0: --random was not given.
std::int64_t random_cases(const Flags& flags);

}  // namespace attn_diag::cli
