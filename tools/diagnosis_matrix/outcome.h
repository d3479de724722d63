// What a diagnosis was worth, against what was planted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/diagnose.h"
#include "tools/diagnosis_matrix/records.h"

namespace attn_diag::diagnosis_matrix {

enum class Outcome : std::uint8_t {
  kHidden,    // the output is within the rounding bounds: these inputs do not show the bug
  kName,      // the bug by name, and no other
  kClass,     // a class that these inputs cannot tell apart, and the bug is in it
  kPartial,   // the bug explains most wrong rows, and is said to be no more than that
  kUnknown,   // "none of the known bugs", or another one partially: no claim
  kNotKnown,  // no claim, of a bug that the catalogue has no statement of: neither right nor wrong
  kMoves,     // gate 0: the result moves
  kWrong,     // a name or class that does not have it, or has a second bug that is not there
};
inline constexpr std::size_t kNumOutcomes = 8;
const char* name(Outcome outcome);

// Whether every part of it is the bug: one, or a bug of k and of v by two parts.
bool names(const Match& match, const Bug& bug);

// For a kernel with one bug.
Outcome judge(const Diagnosis& diagnosis, const Bug& bug);

enum class PairOutcome : std::uint8_t {
  kBoth,     // a pair, or a class with the pair in it
  kOne,      // one of the two, and nothing false
  kUnknown,  // no claim
  kWrong,    // a bug that is not there
};
inline constexpr std::size_t kNumPairOutcomes = 4;
const char* name(PairOutcome outcome);

// For a kernel with two bugs.
PairOutcome judge_pair(const Diagnosis& diagnosis, const Bug& first, const Bug& second);

// "class: a(x = 1) | b", one line.
std::string words_of(const Diagnosis& diagnosis);

}  // namespace attn_diag::diagnosis_matrix
