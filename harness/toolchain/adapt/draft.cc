// The text of an adapter.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "attn_diag/harness/error.h"
#include "harness/base/printable.h"
#include "harness/toolchain/adapt/arguments.h"
#include "harness/toolchain/adapt/bodies.h"
#include "harness/toolchain/adapt/include_line.h"

namespace attn_diag::adapt {
namespace {

namespace fs = std::filesystem;

std::string kernel_name(const fs::path& source) {
  std::string name;
  for (const char c : source.stem().string())
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ? c : '_';
  return name;
}

// The only length there is, of queries and keys alike; 0: there are several.
std::int64_t fixed_length(const Facts& f) {
  const auto found = f.fixed.find(Role::kSeqlen);
  return found == f.fixed.end() || found->second.size() != 1 ? 0 : *found->second.begin();
}

// "if (c.seqlen() != 512) c.refuse(...);" for every size that is fixed otherwise than by the declaration.
std::string refusals(const Facts& f) {
  std::string text;
  for (const auto& [role, values] : f.fixed) {
    if (role == Role::kSeqlen && values.size() == 1) continue;
    std::vector<std::string> conditions;
    for (const std::int64_t value : values)
      conditions.push_back(fmt::format("{} != {}", size_expression(role, f), value));
    text += fmt::format("  if ({})\n    c.refuse(\"{} is fixed in the source: {}\");\n",
                        fmt::join(conditions, " && "), words(role), fmt::join(values, " or "));
  }
  if (f.scaled_q)
    text +=
        "  if (c.scale() != 1.0f)\n    c.refuse(\"q is expected multiplied by the softmax scale: "
        "--softmax-scale 1 gives such\");\n";
  if (f.window_alone)
    text += fmt::format("  if (c.window_right() != {}) c.refuse(\"{}\");\n",
                        f.window_both_sides ? "c.window_left()" : "0",
                        f.window_both_sides ? "its window reaches as far to both sides"
                                            : "its window ends at the query");
  if (f.fixed_splits > 0)
    text += fmt::format("  if (c.num_splits() != {0}) c.refuse(\"the source has {0} splits\");\n",
                        f.fixed_splits);
  return text;
}

std::string declaration(const std::string& name, const Candidate& c, const Facts& f) {
  std::vector<std::string> fields;
  const auto add = [&](const std::string& field, const std::string& value) {
    fields.push_back(fmt::format(".{} = {}", field, value));
  };
  add("name", '"' + name + '"');
  add("summary", fmt::format("\"{}() of the user's source\"", c.function->qualified));
  add("call", "call");
  if (f.part != Part::kAttention)
    add("part", f.part == Part::kScores          ? "Part::kScores"
                : f.part == Part::kFromScores    ? "Part::kFromScores"
                : f.part == Part::kFromRawScores ? "Part::kFromRawScores"
                                                 : "Part::kFromProbs");
  add("dtypes", fmt::format("{}", fmt::join(f.dtypes, " | ")));
  if (!f.head_dims.empty()) add("head_dims", fmt::format("{{{}}}", fmt::join(f.head_dims, ", ")));
  std::vector<std::string> masks;
  if (!f.causal_only && !f.window_alone) masks.emplace_back("none");
  const bool lengths_differ = f.bottom_right && f.other_seqlen_k;
  if (f.causal || f.causal_only)
    masks.emplace_back(lengths_differ ? "causal_bottom_right" : "causal");
  if (f.window) masks.emplace_back("window");
  add("masks", fmt::format("{}", fmt::join(masks, " | ")));
  if (f.both_layouts) add("layouts", "bhsd | bshd");
  if (f.bshd && !f.both_layouts) add("layouts", "bshd");
  if (f.grouped_heads) add("grouped_heads", "true");
  if (f.other_seqlen_k) add("other_seqlen_k", "true");
  const std::int64_t length = fixed_length(f);
  if (length > 0) {
    add("seqlen_q_multiple_of", std::to_string(length));
    add("seqlen_k_multiple_of", std::to_string(length));
    add("max_seqlen_k", std::to_string(length));
  }
  if (length == 0 && f.q_multiple > 1) add("seqlen_q_multiple_of", std::to_string(f.q_multiple));
  if (length == 0 && f.k_multiple > 1) add("seqlen_k_multiple_of", std::to_string(f.k_multiple));
  if (f.own_scale) add("any_scale", "false");
  for (const char tensor : {'q', 'k', 'v'})
    if (const auto codes = f.codes.find(tensor); codes != f.codes.end())
      add(fmt::format("{}_codes", tensor),
          fmt::format("{{CodeType::{}, ScalePer::{}}}", codes->second.type, codes->second.per));
  add("tile",
      fmt::format("{{{}, {}}}", f.tile_m == 0 ? 64 : f.tile_m, f.tile_n == 0 ? 64 : f.tile_n));
  if (f.takes_splits && !f.split_per_tile)
    add("num_splits", std::to_string(f.fixed_splits > 0 ? f.fixed_splits : 2));
  if (f.split_per_tile) add("split_per_tile", "true");
  if (f.tensor_cores) add("tensor_cores", "true");
  if (f.s_in_input_type) add("s_in_input_type", "true");
  if (f.p_in_input_type) add("p_in_input_type", "true");
  if (f.exp2) add("exp2", "true");
  if (f.partial_in_input_type) add("partial_in_input_type", "true");
  if (f.stats_in_input_type) add("partial_stats_in_input_type", "true");
  if (!f.has_lse && f.part != Part::kScores && f.part != Part::kFromProbs) add("lse", "Lse::kNone");
  if (f.has_lse && f.base2_lse) add("lse", "Lse::kBase2");
  if (f.unscaled) add("scores", "Scores::kUnscaled");
  std::string text = "ATTN_DIAG_EXPORT({", line;
  const std::string indent(18, ' ');
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string field = fields[i] + (i + 1 < fields.size() ? "," : "});");
    if (!line.empty() && indent.size() + line.size() + field.size() + 1 > 100) {
      text += line + "\n" + indent;
      line.clear();
    }
    line += (line.empty() ? "" : " ") + field;
  }
  return text + line + "\n";
}

// attn-diag's own problem is fp16, head_dim 64, without a mask, in BHSD.
std::string run_flags(const Facts& f) {
  std::string flags;
  if (f.dtypes.count("fp16") == 0) flags += " --dtype " + *f.dtypes.begin();
  if (!f.head_dims.empty() &&
      std::find(f.head_dims.begin(), f.head_dims.end(), 64) == f.head_dims.end())
    flags += fmt::format(" --head-dim {}", f.head_dims.front());
  for (const auto& [role, flag] : {std::pair{Role::kBatch, "batch"},
                                   {Role::kHeads, "heads"},
                                   {Role::kKvHeads, "kv-heads"},
                                   {Role::kSeqlen, "seqlen"},
                                   {Role::kSeqlenQ, "seqlen-q"},
                                   {Role::kSeqlenK, "seqlen-k"}})
    if (const auto found = f.fixed.find(role); found != f.fixed.end())
      flags += fmt::format(" --{} {}", flag, *found->second.begin());
  // As many heads as KV heads would not show what goes wrong in groups.
  if (f.grouped_heads && f.fixed.count(Role::kHeads) + f.fixed.count(Role::kKvHeads) == 0)
    flags += fmt::format(" --heads {} --kv-heads 2", 2 * (f.group == 0 ? 2 : f.group));
  // One batch would not show what goes wrong between batches.
  if (f.fixed.count(Role::kBatch) == 0) flags += " --batch 2";
  if (f.scaled_q) flags += " --softmax-scale 1";
  if (f.causal_only)
    flags += f.bottom_right && f.other_seqlen_k ? " --mask causal:bottom_right" : " --mask causal";
  if (f.window_alone) flags += f.window_both_sides ? " --mask window:20,20" : " --mask window:20,0";
  if (f.both_layouts) flags += " --layout BHSD,BSHD";
  if (f.bshd && !f.both_layouts) flags += " --layout BSHD";
  return flags;
}

std::string comments(const std::vector<Note>& notes) {
  std::string text;
  for (const auto& [kind, word] :
       {std::pair{NoteKind::kUnknown, "Not known"}, std::pair{NoteKind::kGuessed, "Guessed"}})
    for (const Note& note : notes)
      if (note.kind == kind) text += fmt::format("// {}: {}.\n", word, one_line(note.text));
  return text;
}

// Same words once, in the order in which they came.
void only_once(std::vector<Note>& notes) {
  std::vector<Note> out;
  for (const Note& note : notes)
    if (std::none_of(out.begin(), out.end(), [&](const Note& n) { return n.text == note.text; }))
      out.push_back(note);
  notes = std::move(out);
}

void add_checks(const Candidate& c, const Facts& f, std::vector<Note>& notes) {
  const auto check = [&](const std::string& text) { notes.push_back({NoteKind::kCheck, text}); };
  if (!f.both_layouts && !f.single_head)
    check(fmt::format(
        "the layout ({}): if o is wrong everywhere but in head 0 of batch 0, try the other",
        f.bshd ? "BSHD" : "BHSD"));
  if (f.window_alone)
    check("the window: whether its width counts the query itself, and the keys behind it");
  else if (!f.causal && !f.causal_only)
    check("the mask: none is declared; if the code masks, declare .masks = causal");
  if (f.has_lse && !f.base2_lse) check("the log-sum-exp: natural, of scaled scores");
  if (c.way == Way::kBareKernel) check("the launch shape: grid, block and shared memory");
  if (f.takes_splits && !f.split_per_tile && f.fixed_splits == 0)
    check("num_splits: 2 unless --num-splits says otherwise");
}

// Headers of types that a source uses but leaves to its includer.
std::string missing_headers(const Model& model, const Facts& f) {
  const auto includes = [&](std::initializer_list<std::string_view> any) {
    for (const std::string& include : model.code().includes)
      for (const std::string_view part : any)
        if (include.find(part) != std::string::npos) return true;
    return false;
  };
  if (!model.code().missing.empty() || includes({"mma.h", "torch", "ATen"})) return "";
  std::string text;
  if (f.dtypes.count("fp16") > 0 && !includes({"cuda_fp16"})) text += "#include <cuda_fp16.h>\n";
  if (f.dtypes.count("bf16") > 0 && !includes({"cuda_bf16"})) text += "#include <cuda_bf16.h>\n";
  return text;
}

std::vector<CandidateRecord> records(const std::vector<Candidate>& candidates,
                                     const Candidate* chosen) {
  std::vector<CandidateRecord> out;
  for (const Candidate& c : candidates)
    out.push_back({c.function->qualified, c.function->line, c.way, &c == chosen, c.why_not});
  return out;
}

std::string listed(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const Candidate& c : candidates)
    text += fmt::format("\n  line {}: {}(): {}", c.function->line, c.function->qualified,
                        c.why_not.empty() ? std::string("would do") : c.why_not);
  return text.empty() ? " No function of it is a kernel or launches one." : text;
}

const Candidate& choose(const AdaptRequest& request, const std::vector<Candidate>& candidates,
                        std::vector<Note>& notes) {
  if (!request.function.empty()) {
    for (const Candidate& c : candidates)
      if (c.function->name == request.function || c.function->qualified == request.function) {
        if (c.why_not.empty()) return c;
        throw Error(fmt::format("{}() will not do: {}.", request.function, c.why_not));
      }
    throw Error(fmt::format("{} has no function {}() that launches a kernel.{}",
                            request.source.string(), request.function, listed(candidates)));
  }
  if (candidates.empty() || !candidates.front().why_not.empty())
    throw Error(
        fmt::format("{} has no attention that an adapter can be drafted for.{}\nName the launcher "
                    "with --function "
                    "if it is there under another name, or write the adapter by hand "
                    "(docs/bring-your-kernel.md).",
                    request.source.string(), listed(candidates)));
  const Candidate& best = candidates.front();
  std::string others;
  for (const Candidate& c : candidates)
    if (&c != &best && c.why_not.empty() && c.way == best.way && c.part == best.part &&
        best.function->calls.count(c.function->name) == 0)
      others += fmt::format("{}{}()", others.empty() ? "" : ", ", c.function->qualified);
  if (!others.empty())
    notes.push_back(
        {NoteKind::kGuessed, fmt::format("{}() is meant; {} would do too: --function chooses",
                                         best.function->qualified, others)});
  return best;
}

}  // namespace

const char* words(Way way) {
  switch (way) {
    case Way::kHostFunction:
      return "a host function that launches";
    case Way::kTorchFunction:
      return "a host function of tensors";
    case Way::kLaunchCode:
      return "the launches in a function that makes its own data";
    case Way::kBareKernel:
      return "a kernel on its own, with a launch that is guessed";
  }
  return "";
}

Draft draft_adapter(const AdaptRequest& request) {
  const Model model(request.source);
  for (std::size_t i = 0; i < model.syntax().size(); ++i)
    if (model.syntax().is(i, "ATTN_DIAG_EXPORT"))
      throw Error(fmt::format("{} has an adapter already, in line {}: build it as it is.",
                              request.source.string(), model.syntax().line(i)));
  const std::vector<Candidate> candidates = find_candidates(model);
  Draft draft;
  const Candidate& c = choose(request, candidates, draft.notes);
  draft.source = request.source.string();
  draft.kernel = kernel_name(request.source);
  draft.candidates = records(candidates, &c);
  draft.notes.insert(draft.notes.begin(),
                     {NoteKind::kFound, fmt::format("{}() in line {}, {}", c.function->qualified,
                                                    c.function->line, words(c.way))});
  for (const std::string& missing : model.code().missing)
    draft.notes.push_back({NoteKind::kUnknown,
                           fmt::format("what \"{}\" holds: it is not beside the source", missing)});
  Facts facts = gather(model, c, request.bshd, draft.notes);
  if (!facts.codes.empty() && (facts.single_head || facts.per_batch || facts.host_memory))
    throw Error(
        fmt::format("{}() takes codes of one head, of one batch or in host memory, which a draft "
                    "cannot call: write the adapter by hand, with .k_codes and the like "
                    "(docs/bring-your-kernel.md).",
                    c.function->qualified));
  if (c.part != Part::kAttention && (facts.single_head || facts.per_batch || facts.host_memory))
    throw Error(
        fmt::format("{}() computes a part of attention of one head, of one batch or of host "
                    "memory, which a draft cannot call: write the "
                    "adapter by hand, with .part = (docs/bring-your-kernel.md).",
                    c.function->qualified));
  Body body = make_body(model, c, facts, draft.notes);
  add_checks(c, facts, draft.notes);
  only_once(draft.notes);

  std::string text = fmt::format("// Drafted by attn-diag adapt: calls {}(), line {} of {}.\n",
                                 c.function->qualified, c.function->line,
                                 one_line(request.source.filename().string()));
  text += comments(draft.notes);
  text += missing_headers(model, facts);
  text += "#include <attn_diag/kernels/bring.h>\n";
  if (!facts.codes.empty()) body.headers.insert("coded_inputs.h");
  if (facts.cache) body.headers.insert("kv_cache.h");
  if (facts.other_output_layout || facts.lse_heads_first) body.headers.insert("other_layout.h");
  for (const std::string& header : body.headers)
    text += fmt::format("#include <attn_diag/kernels/{}>\n", header);
  text += "#include <attn_diag/kernels/draft.h>\n";
  text += '\n' + include_line(request, draft.holds_source) + '\n';
  text += body.before;
  text += "static void call(const attn_diag::Call& c) {\n" + refusals(facts) + body.text + "}\n\n";
  const auto count = [&](NoteKind kind) {
    return std::count_if(draft.notes.begin(), draft.notes.end(),
                         [kind](const Note& note) { return note.kind == kind; });
  };
  text +=
      fmt::format("ATTN_DIAG_DRAFT({}, {});  // delete it once you have read what stands above\n",
                  count(NoteKind::kGuessed), count(NoteKind::kUnknown));
  text += declaration(draft.kernel, c, facts);
  draft.text = std::move(text);
  draft.run_flags = run_flags(facts);
  draft.bshd = facts.bshd;
  draft.layout_unsure = facts.layout_by_kernel && !facts.single_head && !facts.both_layouts;
  return draft;
}

}  // namespace attn_diag::adapt
