// Sizes: which are parameters, tiles, head dims, what lengths must be multiples of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "harness/toolchain/adapt/axes.h"
#include "harness/toolchain/adapt/facts_code.h"

namespace attn_diag::adapt {

using source::Syntax;

namespace {

// "head_dim 64", "head dim = 64", "d = 64" of the text; 0 if it has none.
std::int64_t head_dim_of_comments(const Model& model) {
  for (const std::string& text : model.code().texts)
    for (const char* word : {"head_dim", "head dim", "headdim", "HEAD_DIM", "head dimension"})
      for (std::size_t at = text.find(word); at != std::string::npos;
           at = text.find(word, at + 1)) {
        std::size_t i = at + std::string(word).size();
        while (i < text.size() && (text[i] == ' ' || text[i] == '=' || text[i] == ':')) ++i;
        const std::int64_t value = std::strtol(text.c_str() + i, nullptr, 10);
        if (value >= 4 && value <= 512) return value;
      }
  return 0;
}

// Whether comments say that the caller has multiplied q by the scale. That no code does so is not enough: it
// may be the mistake.
bool says_q_is_scaled(const FactsCode& code) {
  if (code.mentions_part({"sqrt"})) return false;
  for (const std::string& text : comments_of(code.model()))
    for (const char* words : {"prescaled", "pre-scaled", "premultiplied", "pre-multiplied",
                              "already scaled", "already multiplied", "scaled by the caller",
                              "caller scales", "caller has scaled", "scaled beforehand"})
      if (lower(text).find(words) != std::string::npos) return true;
  return false;
}

// Whether the comparison at i is the condition of a for.
bool in_for(const Syntax& s, std::size_t i) {
  int depth = 0;
  while (i-- > 0) {
    if (s.is(i, ")")) ++depth;
    if (s.is(i, "{") || s.is(i, "}")) return false;
    if (s.is(i, "(") && depth-- == 0) return s.is(i - 1, "for");
  }
  return false;
}

// "S % 64 == 0", as an assertion has it and not a choice between two ways; "if (S % 64 != 0) return", or what else refuses
// it. At the "%".
bool must_be_multiple(const Syntax& s, std::size_t i) {
  if (!s.is(i + 3, "0")) return false;
  int depth = 0;
  std::size_t open = 0;  // of the condition of an if
  for (std::size_t j = i; j-- > 0 && open == 0;) {
    if (s.is(j, ")")) ++depth;
    if (s[j].is_any({"{", "}", ";"})) break;
    if (s.is(j, "(") && depth-- == 0) {
      depth = 0;
      if (s.is(j - 1, "if")) open = j;
    }
  }
  if (s.is(i + 2, "==")) return open == 0;
  if (!s.is(i + 2, "!=") || open == 0) return false;
  std::size_t then = s.match(open) + 1;
  if (s.is(then, "{")) ++then;
  return s[then].is_any({"return", "throw", "exit", "abort", "printf", "fprintf", "std"});
}

// group == 4, or a template's GROUP: of several the first.
void read_group(FactsCode& code, Facts& facts) {
  const Syntax& s = code.syntax();
  const auto take = [&](std::optional<std::int64_t> value) {
    if (value && *value >= 1 && *value <= 64 && facts.group == 0) facts.group = *value;
  };
  code.each_token([&](const FunctionModel& f, std::size_t i) {
    const bool compared = s[i].is_identifier() && (s.is(i + 1, "==") || s.is(i + 1, "!="));
    if (f.is_kernel || f.is_device || !compared) return;
    if (classify_size(std::string(s[i].text)).role == Role::kGroup)
      take(code.model().value(std::string(s[i + 2].text)));
  });
  for (const FunctionModel* f : code.functions())
    for (std::size_t i = 0; i < f->templates.size(); ++i)
      if (classify_constant(f->templates[i].name).role == Role::kGroup)
        for (const auto& instance : code.model().instances(f->name))
          if (i < instance.size()) take(code.model().value(instance[i]));
  if (facts.group != 0)
    code.note(NoteKind::kFound,
              fmt::format("there is code for {} query heads per KV head", facts.group));
}

}  // namespace

void read_sizes(FactsCode& code, Facts& facts) {
  const Candidate& c = code.candidate();
  facts.grouped_heads =
      code.has(Role::kKvHeads) || code.has(Role::kGroup) || facts.fixed.count(Role::kKvHeads) > 0;
  read_group(code, facts);
  facts.other_seqlen_k =
      facts.one_query ||
      ((code.has(Role::kSeqlenQ) || code.has(Role::kSeqlen)) && code.has(Role::kSeqlenK));
  facts.takes_splits = code.has(Role::kNumSplits);
  facts.part = c.part;
  // Scores that it masks and does not scale are scaled already: q.k of a scale of 1.
  const bool masks_scaled =
      c.part == Part::kFromRawScores && !code.has(Role::kScale) && !code.has(Role::kScaleLog2);
  const bool from_part =
      c.part == Part::kFromScores || c.part == Part::kFromRawScores || c.part == Part::kFromProbs;
  const bool any_scale = from_part || code.has(Role::kScale) || code.has(Role::kScaleLog2);
  if (c.part == Part::kScores && !any_scale) {
    bool root = false;
    code.each_token([&](const FunctionModel&, std::size_t i) {
      root |= code.syntax()[i].text.find("sqrt") != std::string_view::npos;
    });
    facts.unscaled = !root;
  }
  if (facts.unscaled)
    code.note(NoteKind::kGuessed,
              "S is q.k without a scale: no parameter is one, and no code takes a root");
  facts.scaled_q = masks_scaled || (!any_scale && !facts.unscaled && says_q_is_scaled(code));
  facts.own_scale = !any_scale && !facts.scaled_q && !facts.unscaled;
  if (facts.scaled_q)
    code.note(
        NoteKind::kGuessed,
        masks_scaled
            ? "the scores that it is given are scaled already: it masks them, and takes no scale"
            : "q is multiplied by the softmax scale already, as a comment says");
  if (facts.own_scale)
    code.note(NoteKind::kGuessed,
              "no parameter is the softmax scale: it computes 1/sqrt(head_dim) itself");
  if (c.way != Way::kHostFunction) return;
  std::set<Role> roles;
  bool all_known = true;
  for (const auto* own : {&c.roles, &c.member_roles, &c.size_roles})
    for (const Classified& r : *own) roles.insert(r.role);
  for (std::size_t i = 0; i < c.roles.size(); ++i) {
    const Parameter& p = c.function->parameters[i];
    all_known &= p.is_pointer || c.roles[i].role != Role::kUnknown || !is_integer(p.element);
  }
  for (const auto& [role, values] : facts.fixed) roles.insert(role);
  for (const FunctionModel* f : code.functions())
    for (const TemplateParameter& t : f->templates) roles.insert(classify_constant(t.name).role);
  const bool says = roles.count(Role::kBatch) + roles.count(Role::kHeads) > 0;
  if (all_known || !says) settle_heads(roles, facts, code.notes());
}

void read_tiles(FactsCode& code, Facts& facts) {
  const Model& model = code.model();
  const auto take = [&](const std::string& name, std::optional<std::int64_t> value) {
    if (!value || *value < 1 || *value > 1024) return;
    const Role role = classify_constant(name).role;
    std::int64_t* to = role == Role::kTileM   ? &facts.tile_m
                       : role == Role::kTileN ? &facts.tile_n
                                              : nullptr;
    if (to == nullptr || *to != 0) return;
    *to = *value;
    code.note(NoteKind::kFound, fmt::format("{} = {} is {}", name, *value, words(role)));
  };
  for (const FunctionModel* f : code.functions()) {
    for (std::size_t i = 0; i < f->templates.size(); ++i) {
      for (const auto& instance : model.instances(f->name))
        if (i < instance.size()) take(f->templates[i].name, model.value(instance[i]));
      if (!f->templates[i].default_text.empty())
        take(f->templates[i].name, model.value(f->templates[i].default_text));
    }
  }
  for (const std::string& name : model.constants()) take(name, model.value(name));
  if (facts.tile_m == 0 && facts.tile_n == 0) {
    for (const std::string& name : model.constants()) {
      const std::string low = lower(name);
      const auto value = model.value(name);
      const bool square = low == "tile" || low == "tile_size" || low == "ktile" ||
                          low == "ktilesize" || low == "tile_dim" || low == "blk";
      if (!square || !value || *value < 1 || *value > 1024) continue;
      facts.tile_m = facts.tile_n = *value;
      code.note(NoteKind::kGuessed,
                fmt::format("{} = {} is taken for both sides of a tile", name, *value));
      break;
    }
  }
  if (facts.tile_m == 0 || facts.tile_n == 0)
    code.note(
        NoteKind::kGuessed,
        fmt::format("no constant names {} per tile: 64 is declared, which only places findings",
                    facts.tile_m == 0 && facts.tile_n == 0 ? "queries and keys"
                    : facts.tile_m == 0                    ? "queries"
                                                           : "keys"));
}

void read_head_dims(FactsCode& code, Facts& facts) {
  const Model& model = code.model();
  const Syntax& s = code.syntax();
  const Candidate& c = code.candidate();
  std::set<std::int64_t> dims;
  const auto take = [&](const std::string& name, std::optional<std::int64_t> value) {
    if (value && *value >= 4 && *value <= 512 && classify_constant(name).role == Role::kHeadDim)
      dims.insert(*value);
  };
  for (const FunctionModel* f : code.functions()) {
    for (std::size_t i = 0; i < f->templates.size(); ++i) {
      for (const auto& instance : model.instances(f->name))
        if (i < instance.size()) take(f->templates[i].name, model.value(instance[i]));
      take(f->templates[i].name, model.value(f->templates[i].default_text));
    }
  }
  if (dims.empty() || !code.has(Role::kHeadDim))
    for (const std::string& name : model.constants())
      if (name.size() > 1 || dims.empty()) take(name, model.value(name));
  // head_dim == 64, case 128: of a switch on it, head_dim must be 64.
  code.each_token([&](const FunctionModel&, std::size_t i) {
    if (s[i].is_identifier() && classify_size(std::string(s[i].text)).role == Role::kHeadDim &&
        s.is(i + 1, "=="))
      take("head_dim", model.value(std::string(s[i + 2].text)));
    if (!s.is(i, "switch") || !s.is(i + 1, "(")) return;
    if (classify_size(std::string(s[i + 2].text)).role != Role::kHeadDim) return;
    const std::size_t open = s.match(i + 1) + 1;
    for (std::size_t j = open; s.is(open, "{") && j < s.match(open); ++j)
      if (s.is(j, "case")) take("head_dim", model.value(std::string(s[j + 1].text)));
  });
  facts.head_dims.assign(dims.begin(), dims.end());
  if (!dims.empty()) {
    code.note(NoteKind::kFound, fmt::format("head_dim {}", fmt::join(dims, ", ")));
  } else if (c.way == Way::kTorchFunction) {
    code.note(NoteKind::kGuessed,
              "any head_dim: tensors say it, and no constant limits it by name");
  } else if (code.has(Role::kHeadDim) || code.has(Role::kHidden)) {
    code.note(NoteKind::kGuessed,
              "any head_dim: it is a parameter, and no constant limits it by name");
  } else if (const std::int64_t said = head_dim_of_comments(model); said != 0) {
    facts.head_dims = {said};
    code.note(NoteKind::kGuessed, fmt::format("head_dim {}, as a comment says", said));
  } else {
    facts.head_dims = {64};
    code.note(NoteKind::kUnknown,
              "which head_dim it is for: no parameter, constant or comment says; 64 is declared");
  }
}

void read_multiples(FactsCode& code, Facts& facts) {
  const Model& model = code.model();
  const Syntax& s = code.syntax();
  const auto side = [](Role role) {
    return role == Role::kSeqlenK ? 2 : role == Role::kSeqlenQ ? 1 : role == Role::kSeqlen ? 3 : 0;
  };
  int guarded = 0, known = 0;
  code.each_token([&](const FunctionModel& f, std::size_t i) {
    if (!s[i].is_identifier()) return;
    const int which = side(classify_size(std::string(s[i].text)).role);
    if (which == 0) return;
    if (s.is(i + 1, "%") && !f.is_kernel) {
      const auto value = model.value(std::string(s[i + 2].text));
      if (!value || *value < 2 || *value > 1024 || !must_be_multiple(s, i + 1)) return;
      if ((which & 1) != 0) facts.q_multiple = std::max(facts.q_multiple, *value);
      if ((which & 2) != 0) facts.k_multiple = std::max(facts.k_multiple, *value);
      known |= which;
      code.note(NoteKind::kFound, fmt::format("{} must be a multiple of {}", s[i].text, *value));
    }
    const bool compared = s.is(i - 1, "<") || s.is(i - 1, ">=") || s.is(i + 1, "<=") ||
                          s.is(i + 1, ">") || s.is(i - 1, "<=") || s.is(i - 1, ">");
    const bool cut = s.is(i - 2, "min") || s.is(i - 1, ",") || s.is(i + 1, ",") ||
                     (s.is(i + 1, "-") && s.is(i + 2, "1"));
    if (f.is_device || f.is_kernel) guarded |= (compared && !in_for(s, i)) || cut ? which : 0;
  });
  if (facts.tile_m == 0 && facts.tile_n == 0) return;
  const auto guess = [&](std::int64_t& multiple, std::int64_t tile, int which, const char* what) {
    if (tile < 2 || (known & which) != 0 || (guarded & which) != 0) return;
    multiple = tile;
    code.note(NoteKind::kGuessed,
              fmt::format("the number of {} is a multiple of {}: no comparison cuts a last tile",
                          what, tile));
  };
  const bool has_kernel = std::any_of(code.functions().begin(), code.functions().end(),
                                      [](const FunctionModel* f) { return f->is_kernel; });
  if (!has_kernel) return;
  guess(facts.q_multiple, facts.tile_m, 1, "queries");
  guess(facts.k_multiple, facts.tile_n, 2, "keys");
}

}  // namespace attn_diag::adapt
