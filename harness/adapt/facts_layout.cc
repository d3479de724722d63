// Which axis of a tensor is which, and what is masked.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "harness/adapt/facts_code.h"

namespace attn_diag::adapt {

using source::Syntax;

namespace {

// What speaks for either layout.
struct Votes {
  int bshd = 0, bhsd = 0;
};

bool is_queries(Role role) { return role == Role::kSeqlen || role == Role::kSeqlenQ; }
bool is_length(Role role) { return is_queries(role) || role == Role::kSeqlenK; }
bool is_heads(Role role) { return role == Role::kHeads || role == Role::kKvHeads; }

Role role_at(const Syntax& s, std::size_t i) {
  return s[i].is_identifier() ? classify_size(std::string(s[i].text)).role : Role::kUnknown;
}

std::string comments_of(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
      continue;
    }
    const bool line = text.substr(i, 2) == "//";
    if (!line && text.substr(i, 2) != "/*") continue;
    const std::size_t end = std::min(text.find(line ? "\n" : "*/", i + 2), text.size());
    out += std::string(text.substr(i, end - i)) + '\n';
    i = end;
  }
  return out;
}

// "[B, H, N, D]", "(batch, seq, heads, dim)", "[batch][heads][seq][dim]": of four axes, whose order.
void vote_of_axes(std::string_view text, Votes& votes) {
  for (std::size_t at = text.find_first_of("[("); at != std::string_view::npos;
       at = text.find_first_of("[(", at + 1)) {
    std::vector<std::string> names(1);
    for (std::size_t i = at + 1; i < text.size() && names.size() <= 4; ++i) {
      const char c = text[i];
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
        names.back() += c;
      } else if (c == ',' || text.substr(i, 2) == "][") {
        i += c == ']' ? 1 : 0;
        names.emplace_back();
      } else if (c != ' ') {
        break;
      }
    }
    if (names.size() != 4) continue;
    std::array<Role, 4> roles{};
    std::transform(names.begin(), names.end(), roles.begin(),
                   [](const std::string& name) { return classify_size(name).role; });
    if (roles[0] != Role::kBatch || roles[3] != Role::kHeadDim) continue;
    votes.bshd += is_length(roles[1]) && is_heads(roles[2]) ? 1 : 0;
    votes.bhsd += is_heads(roles[1]) && is_length(roles[2]) ? 1 : 0;
  }
}

Votes votes_of_comments(const Model& model) {
  Votes votes;
  for (const std::string& text : model.code().texts) {
    const std::string comments = lower(comments_of(text));
    votes.bshd += comments.find("bshd") != std::string::npos ? 1 : 0;
    votes.bhsd += comments.find("bhsd") != std::string::npos ? 1 : 0;
    vote_of_axes(comments, votes);
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

Votes votes_of_indices(const FactsCode& code) {
  const Syntax& s = code.syntax();
  Votes votes;
  // Products of sizes that index: of a row, heads * dim in BSHD, and dim alone in BHSD.
  code.each_token([&](const FunctionModel&, std::size_t i) {
    if (!s.is(i, "*") || s.is(i - 2, "*")) return;
    const bool ends = !s.is(i + 4, "*");
    if (!s.is(i + 2, "*") || !ends || role_at(s, i + 3) != Role::kHeadDim) return;
    const Role second = role_at(s, i + 1);
    votes.bshd += is_heads(second) ? 1 : 0;
    votes.bhsd += is_length(second) ? 1 : 0;
  });
  // (b * S + s) * H + h against (b * H + h) * S + s.
  code.each_token([&](const FunctionModel&, std::size_t i) {
    if (!s.is(i, ")") || !s.is(i + 1, "*") || indexes_rows(s, i)) return;
    const Role after = role_at(s, i + 2);
    votes.bshd += is_heads(after) ? 1 : 0;
    votes.bhsd += is_length(after) ? 1 : 0;
  });
  // x = q.size(1): which axis is which.
  code.each_token([&](const FunctionModel&, std::size_t i) {
    if (!s.is(i, "size") || !s.is(i + 1, "(") || i < 4) return;
    const Role of = role_at(s, i - 4);
    const bool one = s.is(i + 2, "1"), two = s.is(i + 2, "2");
    if ((one && of == Role::kHeads) || (two && is_queries(of))) votes.bhsd += 2;
    if ((two && of == Role::kHeads) || (one && is_queries(of))) votes.bshd += 2;
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
    for (std::size_t j = f.open; j + 2 < f.close; ++j)
      if (s[j].is(s[at + 3].text) && (s.is(j + 1, "<") || s.is(j + 1, ">=")) &&
          is_queries(role_at(s, j + 2)))
        found = std::string(s[at + 3].text);
  });
  return found;
}

}  // namespace

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
  if (named) {
    code.note(NoteKind::kGuessed, "the mask is always causal, by a name that says so");
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
  const Votes said = votes_of_comments(code.model()), indexed = votes_of_indices(code);
  const std::optional<bool> order = length_before_heads(c.roles);
  std::string why;
  if ((said.bshd > 0) != (said.bhsd > 0)) {
    facts.bshd = said.bshd > 0;
    why = ", as a comment says";
  } else if (indexed.bshd > 0 || indexed.bhsd > 0) {
    facts.bshd = indexed.bshd > indexed.bhsd;
    why = fmt::format(", by {} of {} index expressions", std::max(indexed.bshd, indexed.bhsd),
                      indexed.bshd + indexed.bhsd);
  } else {
    facts.bshd = order.value_or(false);
    why = order ? ", by the order of the parameters alone"
                : ": no index expression shows the order of heads and rows";
  }
  if (!facts.single_head)
    code.note(NoteKind::kGuessed, fmt::format("layout {}{}", facts.bshd ? "BSHD" : "BHSD", why));
}

}  // namespace attn_diag::adapt
