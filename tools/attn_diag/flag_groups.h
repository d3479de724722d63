// Flags that several commands have.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/attn_diag/flags.h"

namespace attn_diag::cli {

// Adds flags to one command, to be read into `flags`.
class FlagGroups {
 public:
  FlagGroups(CLI::App& app, Flags& flags) : x_app(app), x_flags(flags) {}

  CLI::App& app() { return x_app; }
  Flags& flags() { return x_flags; }

  // What stands without a flag: files, or words.
  void words(const char* name, const char* help, int most = 100);
  void stage_flag(const char* help);
  void isolate_flag();
  // `freely`: on any backend, with as many threads and copies landing when asked for, and noted.
  void case_flags(bool freely = true);
  // notes_runs: false for a command that notes nothing; it has the flag anyway.
  void history_flag(bool notes_runs);
  // Sizes, type, mask and memory order; the help is where commands have other defaults.
  void shape_flags(const char* heads, const char* seqlen, const char* mask);
  // As case_flags, with bench's own defaults and without what only the host executor has.
  void bench_flags();
  void foreign_flags();
  void region_flags();
  // As region_flags, for commands that can judge scattered rows.
  void some_rows_flags(const char* group);
  void tolerance_flags();
  void dump_flags(const char* output_help);
  void output_flags(bool with_junit);

 private:
  CLI::App& x_app;
  Flags& x_flags;
};

}  // namespace attn_diag::cli
