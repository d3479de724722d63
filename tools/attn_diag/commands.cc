#include "tools/attn_diag/commands.h"

#include <algorithm>
#include <array>

#include "tools/attn_diag/flag_groups.h"
#include "tools/attn_diag/help.h"

namespace attn_diag::cli {
namespace {

void list_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.words("library", "Kernel libraries (all that are found)");
  app.add_option("--kernel", f.kernel, "Likewise, as other commands have it")->type_name("");
  g.output_flags(false);
}

void doctor_flags(FlagGroups& g) { g.output_flags(false); }

void run_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.case_flags();
  g.stage_flag(kStageHelp);
  g.isolate_flag();
  add_sanity_flags(app, f.sanity, true);
  g.some_rows_flags("Record only");
  g.tolerance_flags();
  g.output_flags(true);
}

void check_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.case_flags(false);
  add_check_flags(app, f.check);
  add_located_flags(app, f.located);
  g.output_flags(false);
}

void dump_flags(FlagGroups& g) {
  g.case_flags();
  g.stage_flag(kStageHelp);
  g.isolate_flag();
  g.region_flags();
  g.dump_flags("The file to write (needed)");
  g.output_flags(false);
}

void compare_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.words("file", "A dump or files of another program, or two dumps");
  g.foreign_flags();
  g.some_rows_flags("Judge only, of one case");
  g.tolerance_flags();
  app.add_flag("--bound", f.bound,
               "Two files: judge by the rounding bound stored in one of them (written by "
               "dump --with-reference)");
  app.add_option("--threads", f.threads, kThreadsHelp)->type_name("");
  g.output_flags(true);
}

void trace_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.case_flags();
  g.stage_flag(kTraceStageHelp);
  add_sanity_flags(app, f.sanity);
  auto* const no_lines =
      app.add_flag("--no-lines", f.no_lines, "Do not look for the line")->group(kRunGroup);
  app.add_flag("--lines", f.lines,
               "Say what variables hold and what lines load, also where all agrees")
      ->excludes(no_lines)
      ->group(kRunGroup);
  app.add_option("--try-edits", f.try_edits,
                 "Also try small edits at the suspected lines, and near them, for as many seconds "
                 "(as repair "
                 "does): lines of those that make it agree come first")
      ->excludes(no_lines)
      ->group(kRunGroup)
      ->type_name("SECONDS");
  auto* const variable =
      app.add_option("--variable", f.variable, "The values of this variable of the source instead")
          ->group(kRunGroup)
          ->type_name("NAME[:LINE]");
  app.add_option("--block", f.block, "Of this block, by number; else one that makes a wrong row")
      ->needs(variable)
      ->group(kRunGroup)
      ->type_name("");
  g.region_flags();
  g.tolerance_flags();
  g.dump_flags("Also leave what was recorded in this file");
  add_located_flags(app, f.located);
  g.output_flags(true);
}

void diagnose_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.words("file", "A dump, or files of another program with q, k, v and o");
  g.case_flags();
  g.stage_flag(kDiagnoseStageHelp);
  add_sanity_flags(app, f.sanity);
  app.add_flag("--no-lines", f.no_lines, "Do not look for the line, which may contradict the name")
      ->group(kRunGroup);
  add_foreign_flags(app, f.foreign);
  add_diagnose_flags(app, f.diagnose);
  g.tolerance_flags();
  g.output_flags(false);
}

void xray_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.case_flags();
  add_xray_flags(app, f.xray);
  g.tolerance_flags();
  g.dump_flags("Also leave what was seen in this file");
  g.output_flags(false);
}

void numerics_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.words("file", "A dump");
  g.case_flags();
  g.stage_flag(kStageHelp);
  add_numerics_flags(app, f.numerics);
  g.region_flags();
  g.output_flags(false);
}

void repair_flags(FlagGroups& g) {
  g.case_flags();
  add_repair_flags(g.app(), g.flags().repair);
  g.tolerance_flags();
  g.output_flags(false);
}

void shrink_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.case_flags();
  g.stage_flag(kTraceStageHelp);
  app.add_flag("--lines", f.lines, "The line that trace names must stay, too: slower")
      ->group(kRunGroup);
  add_shrink_flags(app, f.shrink);
  g.tolerance_flags();
  g.dump_flags("Leave the smallest case and what was recorded of it in this file");
  g.output_flags(false);
}

void report_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.words("file", "A dump, or files of another program with q, k, v and o");
  g.case_flags();
  add_sanity_flags(app, f.sanity);
  app.add_flag("--no-lines", f.no_lines, "Do not look for the line")->group(kRunGroup);
  add_foreign_flags(app, f.foreign);
  app.add_option("-o,--output", f.output, "The page to write, as report.html; else the terminal")
      ->group("The page")
      ->type_name("FILE");
  add_report_flags(app, f.report);
  app.add_flag("--force", f.force, "Overwrite existing files")->group("The page");
  g.tolerance_flags();
  g.output_flags(false);
}

void sweep_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.words("what", "merge DIR: what the shards have left, as one report", 2);
  add_sweep_flags(app, f.sweep);
  g.case_flags();
  g.stage_flag(kStageHelp);
  add_sanity_flags(app, f.sanity, true);
  g.tolerance_flags();
  app.add_option("-o,--output", f.output, "The folder of results; of merge: all lines in one file")
      ->group(kOutputGroup)
      ->type_name("DIR");
  g.output_flags(true);
}

void inputs_flags(FlagGroups& g) {
  g.case_flags();
  g.output_flags(false);
}

void show_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.words("file", "The dump");
  const auto add = [&](const char* flag, std::string& to, const char* help) {
    app.add_option(flag, to, help)->type_name("");
  };
  add("--stage", f.stage, "qk, softmax, pv or reduce; else the first wrong one");
  add("--batch-index", f.batch_index, "Which batch entry; else the first wrong one");
  add("--head", f.head, "Which head; else the first wrong one");
  add("--query", f.query, "Which query; else the first wrong one");
  add("--kv-tile", f.kv_tile, "Around which KV tile; else the first wrong one");
  add("--cells", f.cells, "Values shown of each tensor, or all (8)");
  app.add_flag("--lines", f.lines, "What the trace that wrote it found of the line, instead");
  g.tolerance_flags();
  g.output_flags(false);
}

void history_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  app.add_option("--kernel", f.kernel, "Only runs of this kernel, as it was typed")->type_name("");
  add_history_flags(app, f.history);
  g.output_flags(false);
}

void adapt_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.words("file", "The source");
  app.add_option("-o,--output", f.output, "The adapter to write; else stdout")->type_name("FILE");
  app.add_flag("--force", f.force, "Overwrite an existing file");
  add_adapt_flags(app, f.adapt);
  g.output_flags(false);
}

void build_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.words("file", "The sources");
  app.add_option("-o,--output", f.output, "The library to write, as my_kernel.so")
      ->type_name("FILE");
  app.add_option("--backend", f.backend, "host, or cuda: with nvcc (host)")->type_name("");
  add_build_flags(app, f.build);
  g.output_flags(false);
}

void bench_flags(FlagGroups& g) {
  g.bench_flags();
  g.output_flags(false);
}

void explain_flags(FlagGroups& g) {
  CLI::App& app = g.app();
  Flags& f = g.flags();
  g.words("word", "A word of a report or of a flag; else all are listed", 1);
  app.add_flag("--json", f.json, "One JSON object on stdout, nothing else")->group(kOutputGroup);
}

void completions_flags(FlagGroups& g) {
  g.words("form", "bash, zsh or fish; man: the manual; or kernels", 1);
}

constexpr RefusedFlags kNotOfCheck[] = {
    {"--atol --rtol ", "it judges what memory does, not values."},
    {"--threads ", "a watched run has one worker, so that all of it is seen."},
    {"--async-copies ", "in a watched run copies land late, where a missing wait shows."},
    {"--stage --gate --isolate --batch-index --head --query ",
     "the whole production kernel is watched, without taps."},
    {"--sanity --no-sanity ", "one run is watched; --schedule chooses which."},
};
constexpr RefusedFlags kNotOfRepair[] = {
    {"--stage --gate --isolate --batch-index --head --query ",
     "edits are judged by what the whole production kernel computes."},
    {"--sanity --no-sanity ", "an edit must hold in every order of threads."},
};
constexpr RefusedFlags kNotOfShrink[] = {
    {"--isolate --batch-index --head --query ",
     "every stage of the whole case is looked at, since the smallest is not known before."},
    {"--sanity --no-sanity ", "what the case needs to fail is run again in every smaller one."},
};
constexpr RefusedFlags kNotOfSweep[] = {
    {"--isolate --batch-index --head --query ", "of each case all is judged."},
};
constexpr RefusedFlags kNotOfBench[] = {
    {"--schedule --mma-order --async-copies --sanity --no-sanity ", "a GPU decides that itself."},
    {"--stage --gate --isolate --batch-index --head --query ",
     "the whole production kernel is timed, without taps."},
};

// In the order of attn-diag --help.
const Command kCommands[] = {
    {"list",
     "[LIBRARY...] [FLAGS]",
     kListSummary,
     kListFooter,
     list_flags,
     list_command,
     false,
     {}},
    {"doctor", "[FLAGS]", kDoctorSummary, kDoctorFooter, doctor_flags, doctor_command, false, {}},
    {"run", "--kernel KERNEL [FLAGS]", kRunSummary, kRunFooter, run_flags, run_command, true, {}},
    {"check", "--kernel KERNEL [FLAGS]", kCheckSummary, kCheckFooter, check_flags, check_command,
     true, kNotOfCheck},
    {"dump",
     "--kernel KERNEL -o FILE [FLAGS]",
     kDumpSummary,
     kDumpFooter,
     dump_flags,
     dump_command,
     true,
     {}},
    {"compare",
     "FILE [FILE] [FLAGS]",
     kCompareSummary,
     kCompareFooter,
     compare_flags,
     compare_command,
     false,
     {}},
    {"trace",
     "--kernel KERNEL [FLAGS]",
     kTraceSummary,
     kTraceFooter,
     trace_flags,
     trace_command,
     true,
     {}},
    {"diagnose",
     "--kernel KERNEL | FILE [FLAGS]",
     kDiagnoseSummary,
     kDiagnoseFooter,
     diagnose_flags,
     diagnose_command,
     true,
     {}},
    {"xray",
     "--kernel KERNEL [FLAGS]",
     kXraySummary,
     kXrayFooter,
     xray_flags,
     xray_command,
     true,
     {}},
    {"numerics",
     "--kernel KERNEL | FILE [FLAGS]",
     kNumericsSummary,
     kNumericsFooter,
     numerics_flags,
     numerics_command,
     true,
     {}},
    {"repair", "--kernel LIBRARY [FLAGS]", kRepairSummary, kRepairFooter, repair_flags,
     repair_command, true, kNotOfRepair},
    {"shrink", "--kernel KERNEL [FLAGS]", kShrinkSummary, kShrinkFooter, shrink_flags,
     shrink_command, true, kNotOfShrink},
    {"sweep", "--kernel KERNEL [FLAGS] | merge DIR", kSweepSummary, kSweepFooter, sweep_flags,
     sweep_command, true, kNotOfSweep},
    {"inputs",
     "--kernel KERNEL [FLAGS]",
     kInputsSummary,
     kInputsFooter,
     inputs_flags,
     inputs_command,
     true,
     {}},
    {"report",
     "--kernel KERNEL | FILE [-o PAGE] [FLAGS]",
     kReportSummary,
     kReportFooter,
     report_flags,
     report_command,
     true,
     {}},
    {"show", "FILE [FLAGS]", kShowSummary, kShowFooter, show_flags, show_command, false, {}},
    {"history",
     "[FLAGS]",
     kHistorySummary,
     kHistoryFooter,
     history_flags,
     history_command,
     false,
     {}},
    {"bench", "[FLAGS]", kBenchSummary, kBenchFooter, bench_flags, bench_command, true,
     kNotOfBench},
    {"adapt",
     "FILE [-o FILE] [FLAGS]",
     kAdaptSummary,
     kAdaptFooter,
     adapt_flags,
     adapt_command,
     false,
     {}},
    {"build",
     "FILE... -o LIBRARY [FLAGS] [-- COMPILER FLAGS]",
     kBuildSummary,
     kBuildFooter,
     build_flags,
     build_command,
     false,
     {}},
    {"explain",
     "[WORD] [FLAGS]",
     kExplainSummary,
     kExplainFooter,
     explain_flags,
     explain_command,
     false,
     {}},
    {"completions",
     "bash | zsh | fish | man | kernels",
     kCompletionsSummary,
     kCompletionsFooter,
     completions_flags,
     completions_command,
     false,
     {}},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                         [&](const Command& c) { return c.name == name; });
  return found == std::end(kCommands) ? nullptr : found;
}

}  // namespace attn_diag::cli
