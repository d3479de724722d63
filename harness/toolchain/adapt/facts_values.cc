// Values: types of elements, arithmetic, outputs, where memory is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/toolchain/adapt/axes.h"
#include "harness/toolchain/adapt/codes.h"
#include "harness/toolchain/adapt/facts_code.h"
#include "harness/toolchain/adapt/role_names.h"

namespace attn_diag::adapt {

using source::Syntax;

void read_types(FactsCode& code, Facts& facts) {
  const Model& model = code.model();
  const Syntax& s = code.syntax();
  const Candidate& c = code.candidate();
  const auto add = [&](const std::string& element) {
    std::string type = element;
    for (int i = 0; i < 3 && dtype_of(type).empty(); ++i) type = model.resolve_type(type);
    const std::string dtype = dtype_of(type);
    if (!dtype.empty()) facts.dtypes.insert(dtype);
  };
  const auto tensors = [&](const std::vector<Parameter>& parameters,
                           const std::vector<Classified>& roles) {
    bool q_is_codes = false;
    for (std::size_t i = 0; i < roles.size(); ++i)
      q_is_codes |= roles[i].role == Role::kQ && is_code_type(parameters[i].element);
    for (std::size_t i = 0; i < roles.size(); ++i)
      if ((roles[i].role == Role::kQ || roles[i].role == Role::kQkv ||
           (q_is_codes && roles[i].role == Role::kO) ||
           (c.part != Part::kAttention && roles[i].role == Role::kV)) &&
          parameters[i].is_pointer)
        add(parameters[i].element);
  };
  tensors(c.function->parameters, c.roles);
  tensors(c.members, c.member_roles);
  for (const FunctionModel* f : code.functions()) {
    if (!facts.dtypes.empty()) break;
    if (!f->is_kernel && f != c.function) continue;
    tensors(f->parameters, classify(f->parameters));
    for (std::size_t i = 0; i < f->templates.size(); ++i)
      for (const auto& instance : model.instances(f->name))
        if (i < instance.size() && f->templates[i].kind != "int") add(instance[i]);
  }
  // at::Half by its scalar type, or a data_ptr<...>() that says it.
  if (facts.dtypes.empty())
    code.each_token([&](const FunctionModel&, std::size_t i) {
      if (s.is(i, "data_ptr") && s.is(i + 1, "<") && s.close_angle(i + 1) < s.size())
        add(model.text(i + 2, s.close_angle(i + 1)));
    });
  if (!facts.dtypes.empty()) {
    code.note(NoteKind::kFound, fmt::format("element type {}", fmt::join(facts.dtypes, ", ")));
    return;
  }
  const bool half = code.mentions_part({"half"}), bf16 = code.mentions_part({"bfloat16"});
  const bool told = code.has(Role::kIsFp16) || code.has(Role::kIsBf16);
  if (told && (half || code.has(Role::kIsFp16))) facts.dtypes.insert("fp16");
  if (told && (bf16 || code.has(Role::kIsBf16))) facts.dtypes.insert("bf16");
  if (told && (!half || !bf16)) facts.dtypes.insert("fp32");
  if (told) {
    code.note(NoteKind::kGuessed, fmt::format("element type {}, as a parameter says which",
                                              fmt::join(facts.dtypes, ", ")));
    return;
  }
  // "using bf16 = __nv_bfloat16;", and what that is used for is not seen to be.
  if (!half && !bf16) {
    if (code.file_has({"half", "half2", "__half", "__half2", "__nv_half"}))
      facts.dtypes.insert("fp16");
    if (code.file_has({"__nv_bfloat16", "__nv_bfloat162"})) facts.dtypes.insert("bf16");
    if (!facts.dtypes.empty()) {
      code.note(NoteKind::kGuessed, fmt::format("element type {}, as the file has such elsewhere",
                                                fmt::join(facts.dtypes, ", ")));
      return;
    }
  }
  facts.dtypes.insert(half ? "fp16" : bf16 ? "bf16" : "fp32");
  code.note(NoteKind::kGuessed,
            fmt::format("element type {}, as the code uses {}", *facts.dtypes.begin(),
                        half   ? "half"
                        : bf16 ? "bfloat16"
                               : "neither half nor bfloat16"));
}

namespace {
void read_stored_scores(FactsCode& code, Facts& facts);
}  // namespace

void read_arithmetic(FactsCode& code, Facts& facts) {
  const Syntax& s = code.syntax();
  facts.tensor_cores = code.mentions_part({"wmma", "mma_sync", "wgmma", "mma.sync"});
  code.each_token([&](const FunctionModel&, std::size_t i) {
    facts.tensor_cores |=
        s[i].kind == source::TokenKind::kString && s[i].text.find("mma") != std::string_view::npos;
  });
  facts.exp2 = code.mentions_part({"exp2f", "ex2", "h2exp2", "hexp2"});
  read_stored_scores(code, facts);
  const bool narrow = facts.dtypes.count("fp32") == 0;
  if (facts.tensor_cores) {
    code.note(NoteKind::kFound, "products on tensor cores");
    if (narrow) {
      facts.p_in_input_type = true;
      code.note(NoteKind::kGuessed, "P is rounded to the input type, as tensor cores take it so");
    }
  }
  if (!narrow) return;
  if (code.mentions_part({"__hfma", "__hadd"}))
    code.note(NoteKind::kCheck,
              "sums in 16 bits, as by __hfma2: of those that go over many products the bound of "
              "fp32 is too "
              "narrow; .accumulate or .arithmetic declares them");
  // An array or pointer of P in the input type.
  const auto holds = [&](std::initializer_list<const char*> names) {
    std::string found;
    code.each_token([&](const FunctionModel&, std::size_t i) {
      const std::string dtype = dtype_of(std::string(s[i].text));
      if (!found.empty() || dtype.empty() || dtype == "fp32") return;
      for (std::size_t j = i + 1; j < i + 4 && j < s.size(); ++j)
        for (const char* name : names)
          if (lower(std::string(s[j].text)) == name)
            found = fmt::format("{} {}", s[i].text, s[j].text);
    });
    return found;
  };
  if (const std::string p =
          holds({"p", "sp", "s_p", "ps", "p_s", "p_smem", "smem_p", "rp", "probs", "s_probs"});
      !facts.p_in_input_type && !p.empty()) {
    facts.p_in_input_type = true;
    code.note(NoteKind::kGuessed,
              fmt::format("P is rounded to the input type, as '{}' holds it", p));
  }
  if (const std::string scores = holds({"scores", "s_scores", "sscores", "smem_scores", "logits",
                                        "s_logits", "s_s", "ss", "smem_s", "attn_scores"});
      !scores.empty()) {
    facts.s_in_input_type = true;
    code.note(NoteKind::kGuessed,
              fmt::format("S is rounded to the input type, as '{}' holds it", scores));
  }
}

namespace {

// Scores or probabilities in memory between kernels, in the input type.
void read_stored_scores(FactsCode& code, Facts& facts) {
  if (facts.dtypes == std::set<std::string>{"fp32"}) return;
  const Model& model = code.model();
  for (const FunctionModel* f : code.functions()) {
    if (f->is_device) continue;
    const std::vector<Classified> roles = classify(f->parameters);
    for (std::size_t i = 0; i < roles.size(); ++i) {
      const Parameter& p = f->parameters[i];
      if (!p.is_pointer || (roles[i].role != Role::kScores && roles[i].role != Role::kProbs))
        continue;
      std::string type = p.element;
      for (int k = 0; k < 3 && dtype_of(type).empty(); ++k) type = model.resolve_type(type);
      const bool is_template =
          std::any_of(f->templates.begin(), f->templates.end(),
                      [&](const TemplateParameter& t) { return t.name == p.element; });
      if (dtype_of(type) == "fp32" || (dtype_of(type).empty() && !is_template)) continue;
      // P often takes the place of S.
      const bool scores = roles[i].role == Role::kScores;
      if (scores && !facts.s_in_input_type)
        code.note(NoteKind::kGuessed,
                  fmt::format("S, and P in its place, are rounded to the input type: '{} {}'",
                              p.type, p.name));
      facts.s_in_input_type |= scores;
      facts.p_in_input_type = true;
    }
  }
}

}  // namespace

namespace {

// [heads][rows of all batches], as a comment says or lse[head * total_q + row] does.
void read_lse_order(FactsCode& code, Facts& facts) {
  const Syntax& s = code.syntax();
  for (const std::string& text : comments_of(code.model()))
    for (const NamedAxes& found : axes_in(text))
      facts.lse_heads_first |= tensor_role(found.name) == Role::kLse && found.axes.size() == 3 &&
                               found.axes[0] == Role::kHeads && found.axes[1] == Role::kBatch;
  for (const FunctionModel* f : code.functions()) {
    const std::vector<Classified> roles = classify(f->parameters);
    for (std::size_t p = 0; p < roles.size(); ++p)
      for (std::size_t i = f->open; roles[p].role == Role::kLse && i < f->close; ++i) {
        if (!s[i].is(f->parameters[p].name) || !s.is(i + 1, "[")) continue;
        for (std::size_t j = i + 2; j < s.match(i + 1); ++j)
          facts.lse_heads_first |=
              s.is(j, "*") && classify_size(std::string(s[j + 1].text)).role == Role::kTokens;
      }
  }
  if (facts.lse_heads_first)
    code.note(NoteKind::kGuessed, "the log-sum-exp is [heads][rows of all batches]");
}

}  // namespace

void read_outputs(FactsCode& code, Facts& facts) {
  const Syntax& s = code.syntax();
  const Candidate& c = code.candidate();
  if (c.part == Part::kScores || c.part == Part::kFromProbs) return;
  facts.has_lse = code.has(Role::kLse);
  const bool torch = c.way == Way::kTorchFunction;
  if (!facts.has_lse && !torch)
    code.note(NoteKind::kFound, "no parameter is a log-sum-exp: o alone is compared");
  if (!facts.has_lse && !torch) return;
  read_lse_order(code, facts);
  bool log2 = false, ln2 = false;
  code.each_token([&](const FunctionModel&, std::size_t i) {
    const std::string text = lower(std::string(s[i].text));
    log2 |= text == "log2f" || text == "log2" || text == "__log2f";
    ln2 |= text.find("ln2") != std::string::npos || text == "ln_2" || text.starts_with("0.6931");
  });
  facts.base2_lse = log2 && !ln2;
  if (log2 && facts.has_lse)
    code.note(NoteKind::kGuessed,
              facts.base2_lse
                  ? "the log-sum-exp is in base 2, as the code takes log2 and names no ln 2"
                  : "the log-sum-exp is natural: the code takes log2, but names ln 2 too");
}

void read_host_memory(FactsCode& code, Facts& facts) {
  const Model& model = code.model();
  const Syntax& s = code.syntax();
  const Candidate& c = code.candidate();
  if (c.way != Way::kHostFunction) return;
  for (std::size_t k = 0; k < c.roles.size(); ++k) {
    const std::string& name = c.function->parameters[k].name;
    if (c.roles[k].role != Role::kQ && c.roles[k].role != Role::kO) continue;
    for (std::size_t i = c.function->open; i < c.function->close; ++i)
      if (s[i].text.starts_with("cudaMemcpy") && s.is(i + 1, "("))
        for (const std::string& argument : model.split(i + 2, s.match(i + 1)))
          facts.host_memory |= argument == name;
  }
  if (facts.host_memory)
    code.note(NoteKind::kFound,
              "it copies its arguments to and from the device: they are host memory");
}

}  // namespace attn_diag::adapt
