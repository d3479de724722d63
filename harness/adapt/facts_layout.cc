// Which axis of a tensor is which, and what is masked.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/adapt/facts_code.h"

namespace attn_diag::adapt {

using source::Syntax;

void read_mask(FactsCode& code, Facts& facts) {
  const Model& model = code.model();
  facts.window = code.has(Role::kWindowLeft);
  facts.causal = code.has(Role::kCausal) || code.has(Role::kWindowRight);
  for (const FunctionModel* f : code.functions())
    for (const TemplateParameter& t : f->templates)
      facts.causal |= classify_size(t.name).role == Role::kCausal;
  if (facts.causal) {
    code.note(NoteKind::kFound, "a parameter says whether the mask is causal");
    return;
  }
  bool named = false;
  for (const FunctionModel* f : code.functions())
    named |= lower(f->name).find("causal") != std::string::npos;
  const auto constant =
      std::find_if(model.constants().begin(), model.constants().end(),
                   [](const std::string& n) { return classify_size(n).role == Role::kCausal; });
  if (constant != model.constants().end()) named = model.value(*constant).value_or(0) != 0;
  facts.causal_only = named;
  if (named) code.note(NoteKind::kGuessed, "the mask is always causal, by a name that says so");
}

void read_layout(FactsCode& code, Facts& facts) {
  const Syntax& s = code.syntax();
  const Candidate& c = code.candidate();
  std::set<std::string> axes;
  for (const auto* roles : {&c.roles, &c.member_roles})
    for (const Classified& r : *roles)
      if (r.role == Role::kStride) axes.insert(r.stride);
  if (axes.count("q head") > 0 && axes.count("q seq") > 0) {
    facts.both_layouts = true;
    code.note(NoteKind::kFound, "strides of heads and rows are parameters: both layouts");
    return;
  }
  // Products of sizes that index: of a row, heads * dim in BSHD, and dim alone in BHSD.
  int bshd = 0, bhsd = 0;
  code.each_token([&](const FunctionModel&, std::size_t i) {
    if (!s.is(i, "*") || s.is(i - 2, "*")) return;
    const auto role = [&](std::size_t at) {
      return s[at].is_identifier() ? classify_size(std::string(s[at].text)).role : Role::kUnknown;
    };
    const bool ends = !s.is(i + 4, "*");
    if (!s.is(i + 2, "*") || !ends) return;
    const Role second = role(i + 1), third = role(i + 3);
    const bool heads = second == Role::kHeads || second == Role::kKvHeads;
    const bool seq =
        second == Role::kSeqlen || second == Role::kSeqlenQ || second == Role::kSeqlenK;
    if (third == Role::kHeadDim) (heads ? bshd : seq ? bhsd : bhsd) += heads || seq ? 1 : 0;
  });
  // (b * S + s) * H + h against (b * H + h) * S + s.
  code.each_token([&](const FunctionModel&, std::size_t i) {
    if (!s.is(i, ")") || !s.is(i + 1, "*") || !s[i + 2].is_identifier()) return;
    const Role after = classify_size(std::string(s[i + 2].text)).role;
    bshd += after == Role::kHeads || after == Role::kKvHeads ? 1 : 0;
    bhsd += after == Role::kSeqlen || after == Role::kSeqlenQ || after == Role::kSeqlenK ? 1 : 0;
  });
  // x = q.size(1): which axis is which.
  code.each_token([&](const FunctionModel&, std::size_t i) {
    if (!s.is(i, "size") || !s.is(i + 1, "(") || i < 4) return;
    const Role of = classify_size(std::string(s[i - 4].text)).role;
    const bool one = s.is(i + 2, "1"), two = s.is(i + 2, "2");
    if ((one && of == Role::kHeads) || (two && (of == Role::kSeqlen || of == Role::kSeqlenQ)))
      bhsd += 2;
    if ((two && of == Role::kHeads) || (one && (of == Role::kSeqlen || of == Role::kSeqlenQ)))
      bshd += 2;
  });
  facts.bshd = bshd > bhsd;
  if (facts.single_head) return;
  if (bshd == 0 && bhsd == 0)
    code.note(NoteKind::kGuessed,
              "layout BHSD: no index expression shows the order of heads and rows");
  else
    code.note(NoteKind::kGuessed,
              fmt::format("layout {}, by {} of {} index expressions", facts.bshd ? "BSHD" : "BHSD",
                          std::max(bshd, bhsd), bshd + bhsd));
}

}  // namespace attn_diag::adapt
