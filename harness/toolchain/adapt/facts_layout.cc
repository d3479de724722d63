// Which axis of a tensor is which, and what is masked.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "harness/toolchain/adapt/axes.h"
#include "harness/toolchain/adapt/facts_code.h"
#include "harness/toolchain/adapt/role_names.h"

namespace attn_diag::adapt {

using source::Syntax;

namespace {

// What speaks for either layout.
struct Votes {
  int bshd = 0, bhsd = 0;
  int sequence_first = 0;      // [seq, batch, heads, dim]: BSHD for a batch of one
  int o_bshd = 0, o_bhsd = 0;  // those of the output among them
  bool decides() const { return (bshd > 0) != (bhsd > 0); }
};

Role role_at(const Syntax& s, std::size_t i) {
  return s[i].is_identifier() ? classify_size(std::string(s[i].text)).role : Role::kUnknown;
}

Votes votes_of_comments(const Model& model) {
  Votes votes;
  for (const std::string& text : comments_of(model)) {
    const std::string comments = lower(text);
    for (const char* word : {"bshd", "bsnd", "bthd", "blhd"})
      votes.bshd += comments.find(word) != std::string::npos ? 1 : 0;
    for (const char* word : {"bhsd", "bnsd", "bhtd", "bhld"})
      votes.bhsd += comments.find(word) != std::string::npos ? 1 : 0;
    for (const NamedAxes& found : axes_in(text)) {
      std::vector<Role> axes = found.axes;
      if (axes.size() == 3) axes.insert(axes.begin(), Role::kBatch);
      if (axes.size() != 4 || axes[3] != Role::kHeadDim) continue;
      if (is_length(axes[0]) && axes[1] == Role::kBatch && is_heads(axes[2]))
        ++votes.sequence_first;
      if (axes[0] != Role::kBatch) continue;
      const bool output = tensor_role(found.name) == Role::kO;
      (output ? votes.o_bshd : votes.bshd) += is_length(axes[1]) && is_heads(axes[2]) ? 1 : 0;
      (output ? votes.o_bhsd : votes.bhsd) += is_heads(axes[1]) && is_length(axes[2]) ? 1 : 0;
    }
    // ((b * H + h) * S + s) * D + d
    for (std::size_t at = text.find(") * "); at != std::string::npos;
         at = text.find(") * ", at + 1)) {
      std::size_t end = at + 4;
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
        ++end;
      const Role after = classify_constant(text.substr(at + 4, end - at - 4)).role;
      votes.bshd += is_heads(after) ? 1 : 0;
      votes.bhsd += is_length(after) ? 1 : 0;
    }
  }
  // Comments about the output alone count for all tensors.
  if (votes.bshd + votes.bhsd == 0) {
    votes.bshd = votes.o_bshd;
    votes.bhsd = votes.o_bhsd;
  }
  return votes;
}

// Whether token i stands in lse[...] or the like, which has the same order in either layout.
bool indexes_rows(const Syntax& s, std::size_t i) {
  while (i-- > 1) {
    if (s.is(i, ";") || s.is(i, "{") || s.is(i, "}")) return false;
    if (s.is(i, "]") || s.is(i, ")")) {
      i = s.match(i);
    } else if (s.is(i, "[")) {
      Parameter array;
      array.name = std::string(s[i - 1].text);
      array.element = "float";
      array.is_pointer = true;
      const Role role = classify({array}).front().role;
      return role == Role::kLse || role == Role::kRowMax || role == Role::kRowSum;
    }
  }
  return false;
}

// Votes from the code of the candidate and its kernels; `of_others`: from the rest of the file, that is references
// on the CPU, tests, main().
Votes votes_of_indices(const FactsCode& code, bool of_others) {
  const Syntax& s = code.syntax();
  Votes votes;
  std::vector<const FunctionModel*> functions = code.functions();
  if (of_others) {
    functions.clear();
    for (const FunctionModel& f : code.model().functions())
      if (!f.is_kernel && !f.is_device && f.launches.empty() &&
          std::find(code.functions().begin(), code.functions().end(), &f) == code.functions().end())
        functions.push_back(&f);
  }
  const auto each_token = [&](const auto& f) {
    for (const FunctionModel* function : functions)
      for (std::size_t i = function->open; i < function->close; ++i) f(*function, i);
  };
  // Products of sizes that index: of a row, heads * dim in BSHD, and dim alone in BHSD.
  each_token([&](const FunctionModel&, std::size_t i) {
    if (!s.is(i, "*") || s.is(i - 2, "*")) return;
    const bool ends = !s.is(i + 4, "*");
    if (!s.is(i + 2, "*") || !ends || role_at(s, i + 3) != Role::kHeadDim) return;
    const Role second = role_at(s, i + 1);
    votes.bshd += is_heads(second) ? 1 : 0;
    votes.bhsd += is_length(second) ? 1 : 0;
  });
  // (b * S + s) * H + h against (b * H + h) * S + s.
  each_token([&](const FunctionModel&, std::size_t i) {
    if (!s.is(i, ")") || !s.is(i + 1, "*") || indexes_rows(s, i)) return;
    const Role after = role_at(s, i + 2);
    // (bh * S + s) * Sk is of scores.
    bool of_scores = false;
    for (std::size_t j = s.match(i); j < i; ++j) of_scores |= is_length(role_at(s, j));
    votes.bshd += is_heads(after) ? 1 : 0;
    votes.bhsd += is_length(after) && !of_scores ? 1 : 0;
  });
  // t * kv_dim + h * dim
  each_token([&](const FunctionModel&, std::size_t i) {
    votes.bshd += s.is(i, "*") && role_at(s, i + 1) == Role::kKvHidden && s.is(i + 2, "+") ? 1 : 0;
  });
  // row = heads * dim: of a row in BSHD.
  each_token([&](const FunctionModel& f, std::size_t i) {
    if (of_others || (!f.is_kernel && !f.is_device) || !s.is(i, "=") || !s.is(i + 2, "*")) return;
    const bool ends = s.is(i + 4, ";") || s.is(i + 4, ",");
    const bool row =
        s.is(i - 1, "ld") || s.is(i - 1, "pitch") || role_at(s, i + 3) == Role::kHeadDim;
    if (ends && row && is_heads(role_at(s, i + 1))) ++votes.bshd;
  });
  return votes;
}

// What the host code takes the axes of tensors for: x = q.size(1).
Votes votes_of_tensor_sizes(const FactsCode& code) {
  const Syntax& s = code.syntax();
  Votes votes;
  code.each_token([&](const FunctionModel&, std::size_t i) {
    if (!s.is(i, "size") || !s.is(i + 1, "(") || i < 4) return;
    const Role of = role_at(s, i - 4);
    const bool one = s.is(i + 2, "1"), two = s.is(i + 2, "2");
    if ((one && is_heads(of)) || (two && is_queries(of))) ++votes.bhsd;
    if ((two && is_heads(of)) || (one && is_queries(of))) ++votes.bshd;
  });
  return votes;
}

// Whether the parameters name the length before the heads; nullopt where they lack either.
std::optional<bool> length_before_heads(const std::vector<Classified>& roles) {
  for (const Classified& first : roles) {
    if (!is_length(first.role) && !is_heads(first.role)) continue;
    const bool length = is_length(first.role);
    if (std::any_of(roles.begin(), roles.end(), [&](const Classified& c) {
          return length ? is_heads(c.role) : is_length(c.role);
        }))
      return length;
    return std::nullopt;
  }
  return std::nullopt;
}

// The query that a loop over keys ends at, for (int j = 0; j <= i; ...): a variable that is also compared
// with the number of queries. Empty if there is none.
std::string query_that_ends_a_loop(const FactsCode& code) {
  const Syntax& s = code.syntax();
  std::string found;
  code.each_token([&](const FunctionModel& f, std::size_t i) {
    if (!found.empty() || !s.is(i, "for") || !s.is(i + 1, "(") || (!f.is_kernel && !f.is_device))
      return;
    std::size_t at = i + 2;
    while (at < s.match(i + 1) && !s.is(at, ";")) ++at;
    if (!s.is(at + 2, "<=") || !s[at + 3].is_identifier() || !s.is(at + 4, ";")) return;
    for (std::size_t j = f.open; j + 2 < f.close; ++j) {
      if (!s[j].is(s[at + 3].text)) continue;
      if ((s.is(j + 1, "<") || s.is(j + 1, ">=")) && is_queries(role_at(s, j + 2)))
        found = std::string(s[at + 3].text);
      // t = (index / heads) % queries
      for (std::size_t k = j + 2; s.is(j + 1, "=") && !s.is(k, ",") && !s.is(k, ";"); ++k) {
        if (s.is(k, "(")) k = s.match(k);
        if (s.is(k, "%") && is_queries(role_at(s, k + 1))) found = std::string(s[at + 3].text);
      }
    }
  });
  return found;
}

}  // namespace

namespace {

// A mask of one width: whether that counts the query itself, as in i - j < window, and whether keys
// behind it are seen, too.
void read_window(FactsCode& code, Facts& facts) {
  const Syntax& s = code.syntax();
  int itself = 0, beside = 0;
  const auto is_of = [&](std::size_t i, std::initializer_list<std::string_view> texts) {
    return std::any_of(texts.begin(), texts.end(), [&](std::string_view t) { return s.is(i, t); });
  };
  code.each_token([&](const FunctionModel& f, std::size_t i) {
    if ((!f.is_kernel && !f.is_device) || role_at(s, i) != Role::kWindow) return;
    if (s.is(i - 1, "-")) {  // i - window: where a row begins, or compared with a key
      const bool plus_one = s.is(i + 1, "+") && s.is(i + 2, "1");
      const bool left_out = is_of(i - 3, {">", "<="}) || is_of(i + 1, {"<", ">="});
      const bool compared =
          is_of(i - 3, {">", "<=", "<", ">="}) || is_of(i + 1, {"<", ">=", ">", "<="});
      ++(plus_one != (compared && left_out) ? itself : beside);
    }
    if (s.is(i - 1, "+")) facts.window_both_sides = true;
    if (is_of(i - 1, {"<", ">="})) ++itself;
    if (is_of(i - 1, {"<=", ">"})) ++beside;
  });
  facts.window_alone = facts.window = true;
  facts.window_counts_itself = itself >= beside;
  code.note(
      NoteKind::kGuessed,
      fmt::format("the mask is a window of one width, {}{}",
                  facts.window_counts_itself ? "the query itself counted" : "beside the query",
                  facts.window_both_sides ? ", to both sides" : ", of keys before the query"));
}

// "---- causal mask ----", and not "no causal mask yet".
bool names_causal_mask(const std::string& comment) {
  if (comment.find("causal mask") == comment.npos) return false;
  const char* const words[] = {"no ",  "non",      "not ", "without",
                               "todo", "optional", "if ",  "unless"};
  return std::none_of(std::begin(words), std::end(words),
                      [&](const char* word) { return comment.find(word) != comment.npos; });
}

}  // namespace

void read_mask(FactsCode& code, Facts& facts) {
  const Model& model = code.model();
  const Syntax& s = code.syntax();
  // Queries are the last of the keys where a difference of the lengths is added: nk - nq + i.
  code.each_token([&](const FunctionModel& f, std::size_t i) {
    const Role before = s.is(i, "-") ? role_at(s, i - 1) : Role::kUnknown;
    const Role after = s.is(i, "-") ? role_at(s, i + 1) : Role::kUnknown;
    facts.bottom_right |=
        (f.is_kernel || f.is_device) && before == Role::kSeqlenK && is_queries(after);
  });
  if (code.has(Role::kWindow) && !code.has(Role::kWindowLeft) && !code.has(Role::kCausal))
    return read_window(code, facts);
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
    named |= lower(f->qualified).find("causal") != std::string::npos;
  const auto constant =
      std::find_if(model.constants().begin(), model.constants().end(),
                   [](const std::string& n) { return classify_size(n).role == Role::kCausal; });
  if (constant != model.constants().end()) named = model.value(*constant).value_or(0) != 0;
  facts.causal_only = named;
  if (named) {
    code.note(NoteKind::kGuessed, "the mask is always causal, by a name that says so");
    return;
  }
  for (const std::string& text : comments_of(model))
    named |= facts.bottom_right && lower(text).find("causal") != std::string::npos;
  if (named) {
    facts.causal_only = true;
    code.note(
        NoteKind::kGuessed,
        "the mask is always causal, of the last queries: a comment names it, and the code adds the "
        "difference of the lengths");
    return;
  }
  for (const std::string& text : comments_of(model)) named |= names_causal_mask(lower(text));
  if (named) {
    facts.causal_only = true;
    code.note(NoteKind::kGuessed, "the mask is always causal: a comment names it");
    return;
  }
  const std::string query = query_that_ends_a_loop(code);
  facts.causal_only = !query.empty();
  if (facts.causal_only)
    code.note(NoteKind::kGuessed,
              fmt::format("the mask is always causal: a loop over keys ends at query '{}'", query));
}

void read_layout(FactsCode& code, Facts& facts) {
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
  const Votes said = votes_of_comments(code.model()), taken = votes_of_tensor_sizes(code),
              indexed = votes_of_indices(code, false), others = votes_of_indices(code, true);
  const std::optional<bool> order = length_before_heads(c.roles);
  std::string why;
  if (facts.given_bshd) {
    facts.bshd = *facts.given_bshd;
    why = ", as was given";
  } else if (said.decides()) {
    facts.bshd = said.bshd > 0;
    why = ", as a comment says";
    facts.other_output_layout = facts.bshd ? said.o_bhsd > said.o_bshd : said.o_bshd > said.o_bhsd;
  } else if (said.sequence_first > 0) {
    facts.bshd = true;
    facts.fixed[Role::kBatch] = {1};
    why = ", of a batch of 1: a comment says [seq, batch, heads, dim]";
  } else if (code.has(Role::kOffsets)) {
    facts.bshd = true;
    why = ": the rows of all batches lie one behind the other";
  } else if (taken.decides()) {
    facts.bshd = taken.bshd > 0;
    why = ", as the code takes the sizes of its tensors";
  } else if (others.decides()) {
    facts.bshd = others.bshd > 0;
    why = ", as the code beside it that is no kernel has it";
  } else if (indexed.bshd > 0 || indexed.bhsd > 0) {
    facts.layout_by_kernel = true;
    facts.bshd = indexed.bshd > indexed.bhsd;
    why = fmt::format(", by {} of {} index expressions", std::max(indexed.bshd, indexed.bhsd),
                      indexed.bshd + indexed.bhsd);
  } else {
    facts.layout_by_kernel = true;
    facts.bshd = order.value_or(false);
    why = order ? ", by the order of the parameters alone"
                : ": no index expression shows the order of heads and rows";
  }
  if (facts.other_output_layout)
    code.note(NoteKind::kGuessed,
              fmt::format("the output is in the other layout, {}, as a comment says",
                          facts.bshd ? "BHSD" : "BSHD"));
  if (facts.single_head) return;
  code.note(NoteKind::kGuessed, fmt::format("layout {}{}", facts.bshd ? "BSHD" : "BHSD", why));
  const int against = facts.bshd ? indexed.bhsd - indexed.bshd : indexed.bshd - indexed.bhsd;
  if (against > 0)
    code.note(NoteKind::kCheck,
              fmt::format("the kernel's own index expressions have the other layout, {}: if it is "
                          "wrong, that is where",
                          facts.bshd ? "BHSD" : "BSHD"));
}

}  // namespace attn_diag::adapt
