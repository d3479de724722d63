#include "tools/attn_diag/flag_groups.h"

#include "tools/attn_diag/help.h"

namespace attn_diag::cli {

void FlagGroups::case_flags(bool freely) {
  const auto add = [&](const char* flag, std::string& to, const char* help, const char* group) {
    x_app.add_option(flag, to, help)->group(group)->type_name("");
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
  shape_flags("Query heads (2)", "Queries and keys (128)",
              "none, causal, causal:top_left, causal:bottom_right or window:LEFT,RIGHT (none)");
  add("--softmax-scale", x_flags.softmax_scale, kSoftmaxScaleHelp, kProblemGroup);
  add("--inputs", x_flags.inputs, kInputsHelp, kProblemGroup);
  add("--seed", x_flags.seed, kSeedHelp, kProblemGroup);
  add("--input-scale", x_flags.input_scale, kInputScaleHelp, kProblemGroup);
  add_child_flags(x_app, x_flags.child);
  history_flag(freely);
}

void FlagGroups::history_flag(bool notes_runs) {
  x_app
      .add_flag("--no-history", x_flags.no_history,
                notes_runs ? kNoHistoryHelp : "As always here: this command notes no runs")
      ->group(kOutputGroup);
}

void FlagGroups::shape_flags(const char* heads, const char* seqlen, const char* mask) {
  const auto add = [&](const char* flag, std::string& to, const char* help) {
    x_app.add_option(flag, to, help)->group(kProblemGroup)->type_name("");
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

void FlagGroups::bench_flags() {
  const auto add = [&](const char* flag, std::string& to, const char* help, const char* group) {
    x_app.add_option(flag, to, help)->group(group)->type_name("");
  };
  add("--kernel", x_flags.kernel, "A kernel, a list of them, or all (all)", kRunGroup);
  add("--backend", x_flags.backend, "cuda", kRunGroup);
  add("--tile", x_flags.tile, kTileHelp, kRunGroup);
  add("--num-splits", x_flags.num_splits, kNumSplitsHelp, kRunGroup);
  add("--threads", x_flags.threads, "CPU threads of the reference (all cores)", kRunGroup);
  shape_flags(
      "Query heads (8)", "Queries and keys (128,512,2048,8192)",
      "none, causal, causal:top_left, causal:bottom_right or window:LEFT,RIGHT (none,causal)");
  add("--inputs", x_flags.inputs, "randn, large, ... (attn-diag list shows them) (randn)",
      kProblemGroup);
  add("--seed", x_flags.seed, kSeedHelp, kProblemGroup);
  add("--input-scale", x_flags.input_scale, kInputScaleHelp, kProblemGroup);
  add("--softmax-scale", x_flags.softmax_scale, kSoftmaxScaleHelp, kProblemGroup);
  add_child_flags(x_app, x_flags.child);
  tolerance_flags();
  history_flag(false);
  x_app.add_option("--against", x_flags.against, kAgainstHelp)
      ->group(kOutputGroup)
      ->type_name("FILE");
}

void FlagGroups::foreign_flags() {
  const auto add = [&](const char* flag, std::string& to, const char* help) {
    x_app.add_option(flag, to, help)->group("The file of another program")->type_name("");
  };
  add_foreign_flags(x_app, x_flags.foreign);
  add("--dtype", x_flags.dtype, "Of q, k and v, as the kernel got them");
  add("--mask", x_flags.mask,
      "none, causal, causal:top_left, causal:bottom_right or window:LEFT,RIGHT (none)");
  add("--layout", x_flags.layout, kLayoutHelp);
  add("--softmax-scale", x_flags.softmax_scale, kSoftmaxScaleHelp);
}

void FlagGroups::region_flags() {
  const auto add = [&](const char* flag, std::string& to, const char* help) {
    x_app.add_option(flag, to, help)->group("Record only")->type_name("");
  };
  add("--batch-index", x_flags.batch_index, "A batch entry, or A:B (A to B-1)");
  add("--head", x_flags.head, "A head, or A:B");
  add("--query", x_flags.query, "A query, or A:B");
}

void FlagGroups::some_rows_flags(const char* group) {
  const auto add = [&](const char* flag, std::string& to, const char* help) {
    x_app.add_option(flag, to, help)->group(group)->type_name("");
  };
  add("--batch-index", x_flags.batch_index, "A batch entry, or A:B (A to B-1)");
  add("--head", x_flags.head, "A head, or A:B");
  add("--query", x_flags.query,
      "A query, or A:B, or sample:N: o and lse of N queries here and there, for long sequences");
}

void FlagGroups::tolerance_flags() {
  const char* group = "Judged by the rounding bound, or else by |a - r| <= atol + rtol*|r|";
  x_app.add_option("--atol", x_flags.atol, "Absolute tolerance")->group(group)->type_name("");
  x_app.add_option("--rtol", x_flags.rtol, "Relative tolerance")->group(group)->type_name("");
}

void FlagGroups::words(const char* name, const char* help, int most) {
  x_app.add_option(name, x_flags.files, help)->expected(0, most)->type_name("");
}

void FlagGroups::stage_flag(const char* help) {
  x_app.add_option("--stage,--gate", x_flags.stage, help)->group(kRunGroup)->type_name("");
}

void FlagGroups::isolate_flag() {
  x_app.add_flag("--isolate", x_flags.isolate, kIsolateHelp)->group(kRunGroup);
}

void FlagGroups::dump_flags(const char* output_help) {
  const char* group = "The dump";
  x_app.add_option("-o,--output", x_flags.output, output_help)->group(group)->type_name("FILE");
  x_app.add_flag("--force", x_flags.force, "Overwrite an existing file")->group(group);
  x_app.add_option("--deflate", x_flags.deflate, "Compress, 1 (fast) to 9 (small)")
      ->group(group)
      ->type_name("");
  x_app
      .add_flag("--with-reference", x_flags.with_reference,
                "Also store the fp64 reference and the bounds")
      ->group(group);
}

void FlagGroups::output_flags(bool with_junit) {
  x_app.add_flag("--json", x_flags.json, "One JSON object on stdout, nothing else")
      ->group(kOutputGroup);
  if (with_junit)
    x_app.add_option("--junit", x_flags.junit, "Also write a JUnit XML file")
        ->group(kOutputGroup)
        ->type_name("FILE");
  x_app.add_flag("--quiet", x_flags.quiet, "The verdict only")->group(kOutputGroup);
}

}  // namespace attn_diag::cli
