// Many edits in one text: the one that is chosen while the program runs is in force, the others are not.
//
//   a[i + 1]  becomes  a[(ATTN_DIAG_SITE(7) ? (ATTN_DIAG_EDIT(7) ? (i) : (i - 1)) : (i + 1))]
//
// with the alternatives made of the type of i + 1.
//
// Each alternative stands on a line of its own of a file that is not there, "attn-diag-edit:7", so that what a compiler
// says of it tells which edit is not possible.
#pragma once

#include <string>
#include <vector>

#include "harness/repair/edit.h"

namespace attn_diag::repair {

inline constexpr const char* kEditFile = "attn-diag-edit";

struct Schema {
  std::vector<std::string> texts;  // of Program::files
  std::vector<int> edits;          // the edit of number n is edits[n - 1]
  std::vector<int> first;          // of each edit, the first number of its place
  std::vector<int> left;           // that do not fit with the others
};

// `which`: indices of edits, none of them Way::kAlone.
Schema make_schema(const Program& program, const std::vector<Edit>& edits,
                   const std::vector<int>& which);

// What every file of a library with edits begins with, whichever edits.
std::string edit_declarations();
// What one of its files ends with. The library exports
//   void attn_diag_choose_edit(int)         the number of the edit; 0: none
//   unsigned char* attn_diag_note_edits()   from now on notes where a run comes by: [n] is set for the first number of
//                                           each place, of schema.edits.size() + 1 in all
std::string edit_definitions(const Schema& schema);

// The numbers of edits, and lines of other files, that messages of a compiler which ended in errors blame.
struct Blame {
  std::vector<int> numbers;
  std::vector<std::pair<std::string, int>> lines;  // of errors that blame no edit
};
Blame blamed(const std::string& messages);

}  // namespace attn_diag::repair
