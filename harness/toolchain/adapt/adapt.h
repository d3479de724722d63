// Drafts the adapter of a user's kernel (attn_diag/kernels/bring.h) from its source: what `attn-diag
// adapt` does, as records.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace attn_diag::adapt {

enum class Way {
  kHostFunction,   // a function of the file launches the kernel, given pointers
  kTorchFunction,  // such a function, given tensors of PyTorch
  kLaunchCode,     // launches taken out of a function that makes its own data, as main() does
  kBareKernel,     // a __global__ function, with a launch of its own
};

enum class NoteKind {
  kFound,    // plain from names and types
  kGuessed,  // and why
  kUnknown,  // could not be told: stands as a comment in the draft
  kCheck,    // what to look at first if the result is wrong
};

struct Note {
  NoteKind kind;
  std::string text;  // a sentence without full stop
};

// A function that was looked at.
struct CandidateRecord {
  std::string name;
  int line = 0;
  Way way = Way::kHostFunction;
  bool chosen = false;
  std::string why_not;  // empty: it would do
};

struct Draft {
  std::string source;         // as given
  std::string kernel;         // the name under which it is exported
  std::string text;           // the adapter
  bool holds_source = false;  // its text has that of the source in it, instead of including it
  // Flags of attn-diag run for a problem that the kernel takes; empty: it takes the default.
  std::string run_flags;
  bool bshd = false;
  // Nothing but the kernel's own code says which layout: the other is as likely if it has a mistake.
  bool layout_unsure = false;
  std::vector<CandidateRecord> candidates;
  std::vector<Note> notes;
};

struct AdaptRequest {
  std::filesystem::path source;
  std::string function;  // empty: the best
  // Where the adapter will lie: its #include of the source is relative to that.
  std::filesystem::path output_directory;
  std::optional<bool> bshd;  // the layout, from who knows it; else what the source says
};

// Throws Error where nothing can be drafted, naming what was looked at and why it will not do.
Draft draft_adapter(const AdaptRequest& request);

const char* words(Way way);

}  // namespace attn_diag::adapt
