// The command line as it was typed: which command, which flags, their text. Meaning comes later
// (cases.h), so that every bad value gets the same kind of message.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/attn_diag/adapt_flags.h"
#include "tools/attn_diag/build_flags.h"
#include "tools/attn_diag/check_flags.h"
#include "tools/attn_diag/child_flags.h"
#include "tools/attn_diag/diagnose_flags.h"
#include "tools/attn_diag/foreign_flags.h"
#include "tools/attn_diag/history_flags.h"
#include "tools/attn_diag/located_flags.h"
#include "tools/attn_diag/numerics_flags.h"
#include "tools/attn_diag/repair_flags.h"
#include "tools/attn_diag/report_flags.h"
#include "tools/attn_diag/sanity_flags.h"
#include "tools/attn_diag/shrink_flags.h"
#include "tools/attn_diag/sweep_flags.h"
#include "tools/attn_diag/xray_flags.h"

namespace attn_diag::cli {

// An empty string is a flag that was not given.
struct Flags {
  std::string command;  // "trace"

  std::string kernel, backend, schedule, mma_order, async_copies, threads;
  std::string batch, heads, kv_heads, seqlen, seqlen_q, seqlen_k, head_dim, head_dim_v;
  std::string num_splits, tile, dtype, mask, layout, softmax_scale;
  std::string inputs, seed, input_scale;
  std::string stage;
  std::string batch_index, head, query, kv_tile;
  std::string atol, rtol;
  std::string output, deflate, junit, cells, against;
  std::vector<std::string> files;
  bool isolate = false, force = false, with_reference = false, bound = false;
  bool json = false, quiet = false;
  bool no_lines = false, lines = false;
  std::string variable, block, try_edits;
  bool no_history = false;
  bool no_config = false;
  AdaptFlags adapt;
  BuildFlags build;
  CheckFlags check;
  ChildFlags child;
  DiagnoseFlags diagnose;
  ForeignFlags foreign;
  HistoryFlags history;
  LocatedFlags located;
  NumericsFlags numerics;
  RepairFlags repair;
  ReportFlags report;
  SanityFlags sanity;
  ShrinkFlags shrink;
  SweepFlags sweep;
  XrayFlags xray;
};

struct CommandLine {
  Flags flags;
  std::optional<std::string> text;  // --help, --version: print this and leave
  std::vector<std::string> given;   // long names of the flags that were given, without dashes
};

// Throws Error for what cannot be understood, with the nearest name that can.
CommandLine parse_command_line(const std::vector<std::string>& args);

// A flag, or a word without a flag, of a command: what --help says of it.
struct FlagText {
  std::vector<std::string> names;  // "-o", "--output"; of a word without a flag "FILE"
  std::string help, group;
  std::string type;  // "FILE"; empty: nothing is said
  bool positional = false, takes_value = false, repeats = false;

  const std::string& longest() const { return names.back(); }
};
struct CommandText {
  std::string name, usage, summary, footer;
  std::vector<FlagText> flags;
};
// All commands, in the order of --help, from the same table as it. What completions, the manual and attn-diag.toml know.
std::vector<CommandText> command_texts();

}  // namespace attn_diag::cli
