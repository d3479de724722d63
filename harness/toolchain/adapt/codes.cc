#include "harness/toolchain/adapt/codes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "harness/toolchain/adapt/axes.h"
#include "harness/toolchain/adapt/role_names.h"

namespace attn_diag::adapt {

using source::Syntax;

namespace {

constexpr char kBoth = '2';  // of K and V at once

char tensor_of(Role role) {
  return role == Role::kQ ? 'q' : role == Role::kK ? 'k' : role == Role::kV ? 'v' : 0;
}

// What a name says of codes: "k_scale", "vDequantScales", "zero_point_k", "kv_scale".
struct CodeName {
  bool scale = false, zero = false;
  char tensor = 0;  // 0: it names none
};

CodeName code_name(const std::string& name) {
  static const std::set<std::string> noise = {
      "scale", "scales", "scaling", "descale", "descales", "dequant", "quant", "zero",   "zeros",
      "zp",    "zps",    "point",   "points",  "ptr",      "d",       "dev",   "factor", "factors",
      "s",     "per",    "token",   "head",    "tensor",   "cache",   "sf",    "in"};
  CodeName out;
  std::string rest;
  for (std::string part : split_name(name)) {
    for (const char* ending : {"descales", "descale", "scales", "scale", "zeropoints", "zeropoint",
                               "zeros", "zero", "zps", "zp"}) {
      if (!part.ends_with(ending)) continue;
      (std::string(ending).find("scale") != std::string::npos ? out.scale : out.zero) = true;
      part.resize(part.size() - std::string(ending).size());
      break;
    }
    if (noise.count(part) == 0) rest += part;
  }
  out.tensor = rest == "q" || rest == "query"                   ? 'q'
               : rest == "k" || rest == "key" || rest == "keys" ? 'k'
               : rest == "v" || rest == "value"                 ? 'v'
               : rest == "kv"                                   ? kBoth
                                                                : char{0};
  return out;
}

// "kInt8" and so on. Bytes are fp8 where the code converts such.
std::string code_type(const Model& model, const std::string& element) {
  const auto mentions = [&](const char* word) {
    for (std::size_t i = 0; i < model.syntax().size(); ++i)
      if (lower(std::string(model.syntax()[i].text)).find(word) != std::string::npos) return true;
    return false;
  };
  const std::string type = lower(element);
  if (type.find("e4m3") != std::string::npos) return "kE4m3";
  if (type.find("e5m2") != std::string::npos) return "kE5m2";
  const bool bytes = type.starts_with("u") || type.find("uint8") != std::string::npos ||
                     type.find("fp8_storage") != std::string::npos;
  if (bytes && mentions("e4m3")) return "kE4m3";
  if (bytes && mentions("e5m2")) return "kE5m2";
  return bytes ? "kUint8" : "kInt8";
}

// What the index of a scale depends on.
struct IndexOf {
  bool is_zero = false, length = false, heads = false, head_of = false, both = false, head = false;
};

// The tokens of an initialiser of `name` in a function, from which its index is made: [first, end).
std::pair<std::size_t, std::size_t> initialiser(const Syntax& s, const FunctionModel& f,
                                                std::string_view name, std::size_t before) {
  for (std::size_t i = before; i > f.open + 1; --i) {
    if (!s[i - 1].is(name) || !s.is(i, "=") || s.is(i - 2, ".")) continue;
    std::size_t end = i + 1;
    while (end < f.close && !s.is(end, ";") && !s.is(end, ",")) {
      if (s.is(end, "(") || s.is(end, "[")) end = s.match(end);
      ++end;
    }
    return {i + 1, end};
  }
  return {0, 0};
}

void read_index(const Syntax& s, const FunctionModel& f, std::size_t first, std::size_t end,
                int depth, IndexOf& out) {
  if (depth > 4) return;
  const auto role = [&](std::size_t i) {
    return s[i].is_identifier() ? classify_size(std::string(s[i].text)).role : Role::kUnknown;
  };
  for (std::size_t i = first; i < end; ++i) {
    const Role r = role(i);
    const bool product = s.is(i - 1, "*") || s.is(i + 1, "*");
    const bool divides = s.is(i - 1, "/") || s.is(i - 1, "%");
    if (r == Role::kSeqlen || r == Role::kSeqlenQ || r == Role::kSeqlenK || r == Role::kTokens)
      out.length |= product;
    if (r == Role::kHeads || r == Role::kKvHeads) {
      out.heads |= product;
      out.head_of |= divides && s.is(i - 1, "%");
    }
    if (r == Role::kGroup && divides) out.head = true;
    if (!s[i].is_identifier() || s.is(i - 1, ".") || s.is(i + 1, "(")) continue;
    const std::vector<std::string> parts = split_name(std::string(s[i].text));
    const std::string joined = join(parts);
    const auto has = [&](std::initializer_list<const char*> words) {
      return std::any_of(words.begin(), words.end(), [&](const char* word) {
        return std::find(parts.begin(), parts.end(), word) != parts.end();
      });
    };
    if (joined == "bh" || joined == "bhidx" || joined == "bhid" ||
        (has({"batch", "b"}) && has({"head", "h"})))
      out.both = true;
    else if (has({"head", "h", "hk", "hkv", "kvh", "kvhead", "hq"}))
      out.head = true;
    const auto [from, to] = initialiser(s, f, s[i].text, first);
    if (from != 0) read_index(s, f, from, to, depth + 1, out);
  }
}

// ScalePer by axes; empty if they are not those of scales.
std::string per_of_axes(const std::vector<Role>& axes) {
  const auto has = [&](std::initializer_list<Role> roles) {
    return std::any_of(axes.begin(), axes.end(), [&](Role role) {
      return std::find(roles.begin(), roles.end(), role) != roles.end();
    });
  };
  if (has({Role::kHeadDim, Role::kHeadDimV})) return "";
  if (has({Role::kSeqlen, Role::kSeqlenK, Role::kSeqlenQ, Role::kTokens})) return "kToken";
  const bool heads = has({Role::kHeads, Role::kKvHeads});
  if (has({Role::kBatchHeads}) || (heads && has({Role::kBatch}))) return "kBatchHead";
  return heads ? "kHead" : "";
}

// ScalePer by what comments say of this parameter, or of all scales alike; empty if they say nothing.
std::string per_by_comments(const Model& model, const std::string& name) {
  std::set<std::string> said;
  for (const std::string& text : comments_of(model)) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const std::string low = lower(line);
      if (low.find("scale") == std::string::npos && low.find("quanti") == std::string::npos)
        continue;
      for (const NamedAxes& found : axes_in(line)) {
        const std::string per = per_of_axes(found.axes);
        if (found.name == name && !per.empty()) return per;
        if (!per.empty()) said.insert(per);
      }
      for (const auto& [word, per] : {std::pair{"token", "kToken"}, std::pair{"row", "kToken"},
                                      std::pair{"tensor", "kTensor"}})
        if (low.find(std::string("per ") + word) != std::string::npos ||
            low.find(std::string("per-") + word) != std::string::npos)
          said.insert(per);
    }
  }
  return said.size() == 1 ? *said.begin() : "";
}

// What a pointer to scales or zeros has an element for, by how the code indexes it; empty if that does not show.
std::string per_by_indices(FactsCode& code, char tensor) {
  const Syntax& s = code.syntax();
  IndexOf all;
  bool read = false, alone = true;
  for (const FunctionModel* f : code.functions()) {
    const std::vector<Classified> roles = classify(f->parameters);
    for (std::size_t p = 0; p < roles.size(); ++p) {
      const CodeName name = code_name(f->parameters[p].name);
      const bool is_its = roles[p].role == Role::kCodeScale ? roles[p].tensor == tensor
                                                            : name.scale && name.tensor == tensor;
      if (!is_its || !f->parameters[p].is_pointer) continue;
      for (std::size_t i = f->open + 1; i < f->close; ++i) {
        if (!s[i].is(f->parameters[p].name)) continue;
        if (s.is(i + 1, "[")) {
          read = true;
          const std::size_t end = s.match(i + 1);
          if (end == i + 3 && s.is(i + 2, "0")) continue;
          alone = false;
          read_index(s, *f, i + 2, end, 0, all);
        } else if (s.is(i + 1, "+")) {
          read = true;
          alone = false;
          std::size_t end = i + 2;
          while (end < f->close && !s.is(end, ";") && !s.is(end, ",") && !s.is(end, ")")) {
            if (s.is(end, "(") || s.is(end, "[")) end = s.match(end);
            ++end;
          }
          read_index(s, *f, i + 2, end, 0, all);
        } else if (s.is(i - 1, "*") && !s[i - 2].is_identifier() && !s.is(i - 2, ")") &&
                   !s.is(i - 2, "]")) {
          read = true;
        }
      }
    }
  }
  if (!read) return "";
  if (alone) return "kTensor";
  if (all.length) return "kToken";
  if (all.head_of) return all.heads ? "kBatchHead" : "kHead";
  if (all.heads || all.both) return "kBatchHead";
  return all.head ? "kHead" : "";
}

}  // namespace

bool is_code_type(const std::string& element) {
  static const std::set<std::string> types = {"int8_t",
                                              "uint8_t",
                                              "std::int8_t",
                                              "std::uint8_t",
                                              "signed char",
                                              "unsigned char",
                                              "__nv_fp8_e4m3",
                                              "__nv_fp8_e5m2",
                                              "char",
                                              "char4",
                                              "uchar4",
                                              "__nv_fp8x4_e4m3",
                                              "__nv_fp8x4_e5m2",
                                              "__nv_fp8_storage_t",
                                              "c10::Float8_e4m3fn"};
  return types.count(element) > 0;
}

void settle_codes(const std::vector<Parameter>& parameters, std::vector<Classified>& out) {
  std::string coded;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (const char t = tensor_of(out[i].role);
        t != 0 && parameters[i].is_pointer && is_code_type(parameters[i].element))
      coded += t;
  if (coded.empty()) return;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (parameters[i].is_pointer && is_code_type(parameters[i].element) &&
        tensor_of(out[i].role) != 0)
      continue;
    const CodeName name = code_name(parameters[i].name);
    if (!name.scale && !name.zero) continue;
    const bool of_coded =
        name.tensor == kBoth || (name.tensor != 0 && coded.find(name.tensor) != std::string::npos);
    // "scales" beside one tensor of codes.
    const bool only = name.tensor == 0 && coded.size() == 1 && parameters[i].is_pointer;
    if (!of_coded && !only) continue;
    out[i] = {name.zero ? Role::kCodeZero : Role::kCodeScale, "", ""};
    out[i].tensor = only ? coded[0] : name.tensor;
    if (only) out[i].guess = fmt::format("of {}, the only tensor of codes", coded);
  }
}

std::string codes_not_declared(const Model& model, const std::vector<Parameter>& parameters,
                               const std::vector<Classified>& roles) {
  const auto given = [&](Role role, char tensor) {
    return std::any_of(roles.begin(), roles.end(),
                       [&](const Classified& c) { return c.role == role && c.tensor == tensor; });
  };
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const Parameter& p = parameters[i];
    const char tensor = tensor_of(roles[i].role);
    const bool packed = roles[i].role == Role::kKv || roles[i].role == Role::kQkv;
    if ((tensor == 0 && !packed) || !p.is_pointer || !is_code_type(model.resolve_type(p.element)))
      continue;
    const std::string what = fmt::format("{} is of {}", words(roles[i].role), p.element);
    if (packed) return what + ", quantised, and packed ones cannot be declared";
    if (!is_code_type(p.element))
      return fmt::format("{}, which is {}: name that type itself, and codes are drafted", what,
                         model.resolve_type(p.element));
    if (given(Role::kCodeScale, kBoth))
      return what + ", and K and V share their scales: each has its own here";
    if (!given(Role::kCodeScale, tensor))
      return fmt::format("{}, quantised, and no parameter is its scale ('{}_scale')", what, tensor);
    if (code_type(model, p.element) == "kUint8" && !given(Role::kCodeZero, tensor))
      return fmt::format("{}, quantised, and no parameter is its zero ('{}_zero')", what, tensor);
  }
  return "";
}

void read_codes(FactsCode& code, Facts& facts) {
  const Candidate& c = code.candidate();
  // Where launches are repeated, the parameters are those of the kernels.
  std::vector<std::pair<std::vector<Parameter>, std::vector<Classified>>> lists = {
      {c.function->parameters, c.roles}, {c.members, c.member_roles}};
  if (c.way == Way::kLaunchCode)
    for (const FunctionModel* f : code.functions())
      if (f->is_kernel) lists.emplace_back(f->parameters, classify(f->parameters));
  for (const auto& [parameters, roles] : lists)
    for (std::size_t i = 0; i < roles.size(); ++i) {
      const char tensor = tensor_of(roles[i].role);
      const Parameter& p = parameters[i];
      if (tensor == 0 || !p.is_pointer || !is_code_type(p.element) || facts.codes.count(tensor) > 0)
        continue;
      CodesFact& fact = facts.codes[tensor];
      fact.type = code_type(code.model(), p.element);
      const auto scale = std::find_if(roles.begin(), roles.end(), [&](const Classified& r) {
        return r.role == Role::kCodeScale && r.tensor == tensor;
      });
      const Parameter& of = parameters[static_cast<std::size_t>(scale - roles.begin())];
      std::string why = "is one number";
      if (!of.is_pointer) {
        fact.per = "kTensor";
      } else if (fact.per = per_by_comments(code.model(), of.name); !fact.per.empty()) {
        why = "is what a comment says";
      } else if (fact.per = per_by_indices(code, tensor); !fact.per.empty()) {
        why = "is indexed so";
        code.note(NoteKind::kCheck,
                  fmt::format("what of {} has a scale of its own: only the kernel's own index of "
                              "'{}' says so, and if that is wrong, it does not show",
                              words(roles[i].role), of.name));
      }
      const bool sure = !fact.per.empty();
      if (!sure) fact.per = "kBatchHead";
      const char* of_what = fact.per == "kTensor"      ? "the whole tensor"
                            : fact.per == "kHead"      ? "each head"
                            : fact.per == "kBatchHead" ? "each batch and head"
                                                       : "each token of each head";
      code.note(sure ? NoteKind::kGuessed : NoteKind::kUnknown,
                sure ? fmt::format("{} is codes ({}) with a scale for {}: '{}' {}",
                                   words(roles[i].role), fact.type, of_what, of.name, why)
                     : fmt::format("what of {} has a scale of its own, as no index of '{}' tells: "
                                   "it stands as {}",
                                   words(roles[i].role), of.name, of_what));
    }
}

}  // namespace attn_diag::adapt
