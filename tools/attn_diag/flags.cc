#include "tools/attn_diag/flags.h"

#include <H5public.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>

#include "attn_diag/harness/error.h"
#include "harness/report/text.h"
#include "tools/attn_diag/help.h"
#include "tools/attn_diag/suggest.h"

namespace attn_diag::cli {
namespace {

constexpr int kFlagColumns = 30;
constexpr int kHelpWidth = 100;

// Help within 100 columns, with the whole command in the usage line.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kFlagColumns); }

  std::string make_usage(const CLI::App* app, std::string) const override {
    const std::string name = app->get_parent() == nullptr ? "" : app->get_name() + " ";
    const char* rest = "COMMAND [FLAGS]";
    if (name == "compare ") rest = "FILE [FILE] [FLAGS]";
    if (name == "show ") rest = "FILE [FLAGS]";
    if (name == "adapt ") rest = "FILE [-o FILE] [FLAGS]";
    if (name == "build ") rest = "FILE... -o LIBRARY [FLAGS] [-- COMPILER FLAGS]";
    if (name == "list ") rest = "[LIBRARY...] [FLAGS]";
    if (name == "bench " || name == "doctor " || name == "history ") rest = "[FLAGS]";
    if (name == "run " || name == "check " || name == "trace " || name == "xray " ||
        name == "inputs ")
      rest = "--kernel KERNEL [FLAGS]";
    if (name == "diagnose ") rest = "--kernel KERNEL | FILE [FLAGS]";
    if (name == "dump ") rest = "--kernel KERNEL -o FILE [FLAGS]";
    return fmt::format("\nUsage: attn-diag {}{}\n\n", name, rest);
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return report::wrap(option->get_description(), kHelpWidth - kFlagColumns, 0);
  }
};

class Parser {
 public:
  Parser() : x_app(kSummary, "attn-diag") {
    x_app.set_help_flag("-h,--help", "This text");
    x_app.add_flag("--version", x_version, "Version of attn-diag and of HDF5");
    x_app.footer(kMainFooter);
    x_app.formatter(std::make_shared<HelpFormatter>());
    x_app.allow_extras();
    x_app.require_subcommand(0, 1);

    CLI::App& list = command("list", kListSummary, kListFooter);
    list.add_option("library", x_flags.files, "Kernel libraries (all that are found)")
        ->expected(0, 100)
        ->type_name("");
    list.add_option("--kernel", x_flags.kernel, "Likewise, as other commands have it")
        ->type_name("");
    output_flags(list, false);

    CLI::App& doctor = command("doctor", kDoctorSummary, kDoctorFooter);
    output_flags(doctor, false);

    CLI::App& run = command("run", kRunSummary, kRunFooter);
    case_flags(run);
    run.add_option("--stage,--gate", x_flags.stage, kStageHelp)->group(kRunGroup)->type_name("");
    run.add_flag("--isolate", x_flags.isolate, kIsolateHelp)->group(kRunGroup);
    add_sanity_flags(run, x_flags.sanity, true);
    region_flags(run);
    tolerance_flags(run);
    output_flags(run, true);

    CLI::App& check = command("check", kCheckSummary, kCheckFooter);
    case_flags(check, false);
    add_check_flags(check, x_flags.check);
    output_flags(check, false);

    CLI::App& dump = command("dump", kDumpSummary, kDumpFooter);
    case_flags(dump);
    dump.add_option("--stage,--gate", x_flags.stage, kStageHelp)->group(kRunGroup)->type_name("");
    dump.add_flag("--isolate", x_flags.isolate, kIsolateHelp)->group(kRunGroup);
    region_flags(dump);
    dump_flags(dump, "The file to write (needed)");
    output_flags(dump, false);

    CLI::App& compare = command("compare", kCompareSummary, kCompareFooter);
    compare.add_option("file", x_flags.files, "One dump, or two")->expected(0, 100)->type_name("");
    tolerance_flags(compare);
    compare.add_flag("--bound", x_flags.bound,
                     "Two files: judge by the rounding bound stored in one of them (written by "
                     "dump --with-reference)");
    compare.add_option("--threads", x_flags.threads, kThreadsHelp)->type_name("");
    output_flags(compare, true);

    CLI::App& trace = command("trace", kTraceSummary, kTraceFooter);
    case_flags(trace);
    trace.add_option("--stage,--gate", x_flags.stage, kTraceStageHelp)
        ->group(kRunGroup)
        ->type_name("");
    add_sanity_flags(trace, x_flags.sanity);
    region_flags(trace);
    tolerance_flags(trace);
    dump_flags(trace, "Also leave what was recorded in this file");
    output_flags(trace, true);

    CLI::App& diagnose = command("diagnose", kDiagnoseSummary, kDiagnoseFooter);
    diagnose
        .add_option("file", x_flags.files, "A dump, or files of another program with q, k, v and o")
        ->expected(0, 100)
        ->type_name("");
    case_flags(diagnose);
    diagnose.add_option("--stage,--gate", x_flags.stage, kDiagnoseStageHelp)
        ->group(kRunGroup)
        ->type_name("");
    add_sanity_flags(diagnose, x_flags.sanity);
    add_diagnose_flags(diagnose, x_flags.diagnose);
    tolerance_flags(diagnose);
    output_flags(diagnose, false);

    CLI::App& xray = command("xray", kXraySummary, kXrayFooter);
    case_flags(xray);
    add_xray_flags(xray, x_flags.xray);
    tolerance_flags(xray);
    dump_flags(xray, "Also leave what was seen in this file");
    output_flags(xray, false);

    CLI::App& inputs = command("inputs", kInputsSummary, kInputsFooter);
    case_flags(inputs);
    output_flags(inputs, false);

    CLI::App& show = command("show", kShowSummary, kShowFooter);
    show.add_option("file", x_flags.files, "The dump")->expected(0, 100)->type_name("");
    const auto add = [&](const char* flag, std::string& to, const char* help) {
      show.add_option(flag, to, help)->type_name("");
    };
    add("--stage", x_flags.stage, "qk, softmax, pv or reduce; else the first wrong one");
    add("--batch-index", x_flags.batch_index, "Which batch entry; else the first wrong one");
    add("--head", x_flags.head, "Which head; else the first wrong one");
    add("--query", x_flags.query, "Which query; else the first wrong one");
    add("--kv-tile", x_flags.kv_tile, "Around which KV tile; else the first wrong one");
    add("--cells", x_flags.cells, "Values shown of each tensor, or all (8)");
    tolerance_flags(show);
    output_flags(show, false);

    CLI::App& history = command("history", kHistorySummary, kHistoryFooter);
    history.add_option("--kernel", x_flags.kernel, "Only runs of this kernel, as it was typed")
        ->type_name("");
    add_history_flags(history, x_flags.history);
    output_flags(history, false);

    CLI::App& adapt = command("adapt", kAdaptSummary, kAdaptFooter);
    adapt.add_option("file", x_flags.files, "The source")->expected(0, 100)->type_name("");
    adapt.add_option("-o,--output", x_flags.output, "The adapter to write; else stdout")
        ->type_name("FILE");
    adapt.add_flag("--force", x_flags.force, "Overwrite an existing file");
    add_adapt_flags(adapt, x_flags.adapt);
    output_flags(adapt, false);

    CLI::App& build = command("build", kBuildSummary, kBuildFooter);
    build.add_option("file", x_flags.files, "The sources")->expected(0, 100)->type_name("");
    build.add_option("-o,--output", x_flags.output, "The library to write, as my_kernel.so")
        ->type_name("FILE");
    build.add_option("--backend", x_flags.backend, "host, or cuda: with nvcc (host)")
        ->type_name("");
    add_build_flags(build, x_flags.build);
    output_flags(build, false);

    CLI::App& bench = command("bench", kBenchSummary, kBenchFooter);
    bench_flags(bench);
    output_flags(bench, false);
  }

  CommandLine parse(std::vector<std::string> args) {
    x_flags.build.compiler_flags = take_compiler_flags(args);
    std::reverse(args.begin(), args.end());  // as CLI11 wants them
    try {
      x_app.parse(args);
    } catch (const CLI::CallForHelp&) {
      CLI::App* on = chosen();
      return {x_flags, (on == nullptr ? x_app : *on).help()};
    } catch (const CLI::ParseError& e) {
      throw Error(fmt::format("{}. See attn-diag {}--help.", e.what(), command_name()));
    }
    CLI::App* on = chosen();
    refuse_leftovers(on);
    if (x_version) return {x_flags, version_text()};
    if (on == nullptr) throw Error(fmt::format("No command given. {}", kCommandsHelp));
    x_flags.command = on->get_name();
    refuse_swallowed_flags(*on);
    return {x_flags, std::nullopt};
  }

 private:
  CLI::App& command(const char* name, const char* summary, const char* footer) {
    CLI::App* app = x_app.add_subcommand(name, summary);
    app->footer(footer);
    app->allow_extras();
    return *app;
  }

  // `freely`: on any backend, with as many threads and copies landing when asked for, and noted.
  void case_flags(CLI::App& app, bool freely = true) {
    const auto add = [&](const char* flag, std::string& to, const char* help, const char* group) {
      app.add_option(flag, to, help)->group(group)->type_name("");
    };
    add("--kernel", x_flags.kernel, "name, name@fault or ./library.so:name (needed)", kRunGroup);
    add("--backend", x_flags.backend,
        freely ? "host, cuda, or auto: cuda where a GPU can run it (auto)" : "host", kRunGroup);
    add("--schedule", x_flags.schedule,
        "Of backend host: forward, reverse, seed:N, lockstep, lockstep:reverse or lockstep:turns",
        kRunGroup);
    add("--mma-order", x_flags.mma_order,
        "Of backend host: how tensor-core products are summed; 0 as on sm_90, N otherwise",
        kRunGroup);
    if (freely) {
      add("--async-copies", x_flags.async_copies,
          "Of backend host: when asynchronous copies land, late or early", kRunGroup);
      add("--threads", x_flags.threads, kThreadsHelp, kRunGroup);
    }
    add("--tile", x_flags.tile, kTileHelp, kRunGroup);
    add("--num-splits", x_flags.num_splits, kNumSplitsHelp, kRunGroup);
    shape_flags(app, "Query heads (2)", "Queries and keys (128)",
                "none, causal, causal:top_left, causal:bottom_right or window:LEFT,RIGHT (none)");
    add("--softmax-scale", x_flags.softmax_scale, kSoftmaxScaleHelp, kProblemGroup);
    add("--inputs", x_flags.inputs, kInputsHelp, kProblemGroup);
    add("--seed", x_flags.seed, kSeedHelp, kProblemGroup);
    add("--input-scale", x_flags.input_scale, kInputScaleHelp, kProblemGroup);
    add_child_flags(app, x_flags.child);
    history_flag(app, freely);
  }

  // Of a command that notes nothing it is kept anyway.
  void history_flag(CLI::App& app, bool notes_runs) {
    app.add_flag("--no-history", x_flags.no_history,
                 notes_runs ? kNoHistoryHelp : "As always here: this command notes no runs")
        ->group(kOutputGroup);
  }

  // Sizes, type, mask and memory order; the help is where commands have other defaults.
  void shape_flags(CLI::App& app, const char* heads, const char* seqlen, const char* mask) {
    const auto add = [&](const char* flag, std::string& to, const char* help) {
      app.add_option(flag, to, help)->group(kProblemGroup)->type_name("");
    };
    add("--batch", x_flags.batch, "Batch size (1)");
    add("--heads", x_flags.heads, heads);
    add("--kv-heads", x_flags.kv_heads, kKvHeadsHelp);
    add("--seqlen", x_flags.seqlen, seqlen);
    add("--seqlen-q", x_flags.seqlen_q, kSeqlenQHelp);
    add("--seqlen-k", x_flags.seqlen_k, kSeqlenKHelp);
    add("--head-dim", x_flags.head_dim, kHeadDimHelp);
    add("--head-dim-v", x_flags.head_dim_v, kHeadDimVHelp);
    add("--dtype", x_flags.dtype, kDTypeHelp);
    add("--mask", x_flags.mask, mask);
    add("--layout", x_flags.layout, kLayoutHelp);
  }

  // As case_flags, with bench's own defaults and without what only the host executor has.
  void bench_flags(CLI::App& app) {
    const auto add = [&](const char* flag, std::string& to, const char* help, const char* group) {
      app.add_option(flag, to, help)->group(group)->type_name("");
    };
    add("--kernel", x_flags.kernel, "A kernel, a list of them, or all (all)", kRunGroup);
    add("--backend", x_flags.backend, "cuda", kRunGroup);
    add("--tile", x_flags.tile, kTileHelp, kRunGroup);
    add("--num-splits", x_flags.num_splits, kNumSplitsHelp, kRunGroup);
    add("--threads", x_flags.threads, "CPU threads of the reference (all cores)", kRunGroup);
    shape_flags(
        app, "Query heads (8)", "Queries and keys (128,512,2048,8192)",
        "none, causal, causal:top_left, causal:bottom_right or window:LEFT,RIGHT (none,causal)");
    add("--inputs", x_flags.inputs, "randn, large, ... (attn-diag list shows them) (randn)",
        kProblemGroup);
    add("--seed", x_flags.seed, kSeedHelp, kProblemGroup);
    add("--input-scale", x_flags.input_scale, kInputScaleHelp, kProblemGroup);
    add("--softmax-scale", x_flags.softmax_scale, kSoftmaxScaleHelp, kProblemGroup);
    add_child_flags(app, x_flags.child);
    tolerance_flags(app);
    history_flag(app, false);
    app.add_option("--against", x_flags.against, kAgainstHelp)
        ->group(kOutputGroup)
        ->type_name("FILE");
  }

  void region_flags(CLI::App& app) {
    const auto add = [&](const char* flag, std::string& to, const char* help) {
      app.add_option(flag, to, help)->group("Record only")->type_name("");
    };
    add("--batch-index", x_flags.batch_index, "A batch entry, or A:B (A to B-1)");
    add("--head", x_flags.head, "A head, or A:B");
    add("--query", x_flags.query, "A query, or A:B");
  }

  void tolerance_flags(CLI::App& app) {
    const char* group = "Judged by the rounding bound, or else by |a - r| <= atol + rtol*|r|";
    app.add_option("--atol", x_flags.atol, "Absolute tolerance")->group(group)->type_name("");
    app.add_option("--rtol", x_flags.rtol, "Relative tolerance")->group(group)->type_name("");
  }

  void dump_flags(CLI::App& app, const char* output_help) {
    const char* group = "The dump";
    app.add_option("-o,--output", x_flags.output, output_help)->group(group)->type_name("FILE");
    app.add_flag("--force", x_flags.force, "Overwrite an existing file")->group(group);
    app.add_option("--deflate", x_flags.deflate, "Compress, 1 (fast) to 9 (small)")
        ->group(group)
        ->type_name("");
    app.add_flag("--with-reference", x_flags.with_reference,
                 "Also store the fp64 reference and the bounds")
        ->group(group);
  }

  void output_flags(CLI::App& app, bool with_junit) {
    app.add_flag("--json", x_flags.json, "One JSON object on stdout, nothing else")
        ->group(kOutputGroup);
    if (with_junit)
      app.add_option("--junit", x_flags.junit, "Also write a JUnit XML file")
          ->group(kOutputGroup)
          ->type_name("FILE");
    app.add_flag("--quiet", x_flags.quiet, "The verdict only")->group(kOutputGroup);
  }

  CLI::App* chosen() {
    const auto apps = x_app.get_subcommands();
    return apps.empty() ? nullptr : apps.front();
  }
  std::string command_name() {
    CLI::App* on = chosen();
    return on == nullptr ? "" : on->get_name() + " ";
  }

  static std::vector<std::string> flag_names(CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* o : app.get_options())
      for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
    return names;
  }

  // What no flag and no command took.
  void refuse_leftovers(CLI::App* on) {
    std::vector<std::string> left = x_app.remaining(false);
    if (left.empty() && on != nullptr) left = on->remaining(false);
    if (left.empty()) return;
    const std::string& first = left.front();
    if (first.empty() || first[0] != '-') {
      if (on != nullptr)
        throw Error(fmt::format("{} does not take '{}'. See attn-diag {} --help.", on->get_name(),
                                first, on->get_name()));
      std::vector<std::string> names;
      for (const CLI::App* app : x_app.get_subcommands({})) names.push_back(app->get_name());
      throw Error(fmt::format("There is no command '{}'.{} {}", first, did_you_mean(first, names),
                              kCommandsHelp));
    }
    const std::string flag = first.substr(0, first.find('='));
    if (on == nullptr)
      throw Error(fmt::format("There is no flag {} before the command. {}", flag, kCommandsHelp));
    const char* const why = why_no_flag(on->get_name(), flag);
    throw Error(fmt::format(
        "{} has no flag {}{} See attn-diag {} --help.", on->get_name(), flag,
        why != nullptr ? fmt::format(": {}", why) : '.' + did_you_mean(flag, flag_names(*on)),
        on->get_name()));
  }

  // Why a flag that other commands have makes no sense of this one; null where it is nobody's.
  static const char* why_no_flag(std::string_view command, std::string_view flag) {
    struct Row {
      std::string_view command, flags;
      const char* why;
    };
    static constexpr Row kRows[] = {
        {"check", "--atol --rtol ", "it judges what memory does, not values."},
        {"check", "--threads ", "a watched run has one worker, so that all of it is seen."},
        {"check", "--async-copies ",
         "in a watched run copies land late, where a missing wait shows."},
        {"check", "--stage --gate --isolate --batch-index --head --query ",
         "the whole production kernel is watched, without taps."},
        {"check", "--sanity --no-sanity ", "one run is watched; --schedule chooses which."},
        {"bench", "--schedule --mma-order --async-copies --sanity --no-sanity ",
         "a GPU decides that itself."},
        {"bench", "--stage --gate --isolate --batch-index --head --query ",
         "the whole production kernel is timed, without taps."},
    };
    for (const Row& row : kRows)
      if (row.command == command && row.flags.find(std::string(flag) + ' ') != row.flags.npos)
        return row.why;
    return nullptr;
  }

  // CLI11 gives a flag whatever word follows it, even `--kernel --json`.
  static void refuse_swallowed_flags(CLI::App& app) {
    const std::vector<std::string> names = flag_names(app);
    for (const CLI::Option* o : app.get_options()) {
      if (o->get_lnames().empty() || o->get_expected_max() == 0) continue;
      for (const std::string& value : o->results()) {
        if (std::find(names.begin(), names.end(), value) != names.end())
          throw Error(fmt::format("--{} needs a value, but is followed by the flag {}.",
                                  o->get_lnames().front(), value));
        if (value.empty())
          throw Error(fmt::format("--{} needs a value, but was given an empty one.",
                                  o->get_lnames().front()));
      }
    }
  }

  static std::string version_text() {
    std::array<unsigned, 3> v{};
    H5get_libversion(&v[0], &v[1], &v[2]);
    return fmt::format("attn-diag {}\nHDF5 {}.{}.{}\n", ATTN_DIAG_VERSION, v[0], v[1], v[2]);
  }

  CLI::App x_app;
  Flags x_flags;
  bool x_version = false;
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& args) {
  return Parser().parse(args);
}

}  // namespace attn_diag::cli
