// __shared__ and extern __shared__.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/toolchain/source/pass.h"

namespace attn_diag::source {
namespace {

// One name of `extern __shared__ float a[], b[][64];`.
struct DynamicArray {
  std::string name;
  std::string
      reference;  // "float (&a)[] = ...;" as a local declaration, and its name for the checker
};

// The end of an alignment or attribute that begins at i, or i.
std::size_t skip_attribute(const Syntax& s, std::size_t i) {
  const bool takes_parenthesis =
      s.is(i, "alignas") || s.is(i, "__align__") || s.is(i, "__attribute__");
  if (takes_parenthesis && s.is(i + 1, "(")) return s.match(i + 1) + 1;
  if (s.is(i, "[") && s.is(i + 1, "[")) return s.match(i) + 1;
  return i;
}

// What a declaration `[begin, end)` of dynamic shared memory declares.
std::vector<DynamicArray> dynamic_arrays(const Pass& pass, std::size_t begin, std::size_t end) {
  const Syntax& s = pass.syntax;
  // The type is what is left in front of the first name without storage class and alignment. Names
  // are followed by "[", "," or the end.
  std::string type;
  std::vector<DynamicArray> arrays;
  std::size_t i = begin;
  while (i < end) {
    const std::size_t attribute_end = skip_attribute(s, i);
    if (attribute_end != i) {
      i = attribute_end;
      continue;
    }
    if (s.is(i, "extern") || s.is(i, "__shared__") || s.is(i, "static")) {
      ++i;
      continue;
    }
    const bool is_name = s[i].is_identifier() && (i + 1 == end || s.is(i + 1, "[") ||
                                                  s.is(i + 1, ",") || s.is(i + 1, "__attribute__"));
    if (!is_name) {
      if (s.is(i, "<")) {
        const std::size_t close = s.close_angle(i);
        if (close < end) {
          type += pass.source(i, close + 1);
          i = close + 1;
          continue;
        }
      }
      type += (type.empty() || s.is(i, "::") || type.ends_with("::") ? "" : " ") +
              std::string(s[i].text);
      ++i;
      continue;
    }
    DynamicArray array;
    array.name = s[i].text;
    std::string extents;
    for (++i; i < end && s.is(i, "["); i = s.match(i) + 1)
      extents += pass.source(i, s.match(i) + 1);
    while (i < end && !s.is(i, ",")) i = std::max(i + 1, skip_attribute(s, i));
    ++i;  // the comma
    array.reference = fmt::format(
        "{0} (&{1}){2} = *static_cast<{0} (*){2}>(static_cast<void*>("
        "::attn_diag::host::dynamic_shared_memory()));"
        " ::attn_diag::host::named_shared(\"{1}\", &{1}[0]);",
        type, array.name, extents);
    arrays.push_back(array);
  }
  return arrays;
}

// Names of a declaration `[begin, end)`.
std::vector<std::string> declared_names(const Syntax& s, std::size_t begin, std::size_t end) {
  std::vector<std::string> names;
  bool initialiser = false;
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t attribute_end = skip_attribute(s, i);
    if (attribute_end != i) {
      i = attribute_end - 1;
    } else if (s.is(i, "[") || s.is(i, "(") || s.is(i, "{")) {
      i = s.match(i);
    } else if (s.is(i, "<")) {
      if (const std::size_t close = s.close_angle(i); close < end) i = close;
    } else if (s.is(i, "=")) {
      initialiser = true;
    } else if (s.is(i, ",")) {
      initialiser = false;
    } else if (!initialiser && s[i].is_identifier() && !s.is(i + 1, "::") &&
               (i + 1 == end || s.is(i + 1, "[") || s.is(i + 1, ",") || s.is(i + 1, "=") ||
                s.is(i + 1, "__attribute__"))) {
      names.emplace_back(s[i].text);
    }
  }
  return names;
}

// The "{" of the block that token i stands in directly.
std::size_t block_around(const Syntax& s, std::size_t i) {
  while (i-- > 0) {
    if (s.is(i, "}") || s.is(i, ")") || s.is(i, "]"))
      i = s.match(i);
    else if (s.is(i, "{"))
      return i;
  }
  return 0;
}

// What aligns the variables of a declaration `[begin, end)`: "alignas(16) ".
std::string alignments(const Pass& pass, std::size_t begin, std::size_t end) {
  const Syntax& s = pass.syntax;
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    if (s.is(i, "__align__"))
      text += "__attribute__((aligned" + pass.source(i + 1, s.match(i + 1) + 1) + ")) ";
    else if (s.is(i, "alignas") || s.is(i, "__attribute__"))
      text += pass.source(i, s.match(i + 1) + 1) + ' ';
    else if (s[i].is_any({"(", "[", "{"}))
      i = s.match(i);
    else
      continue;
    if (s.is(i + 1, "(")) i = s.match(i + 1);
  }
  return text;
}

std::string guard(std::size_t number, const char* side) {
  return fmt::format(
      "[[gnu::used]] alignas(::attn_diag::host::kStaticAlignment) static thread_local unsigned "
      "char "
      "attn_diag_guard_{}_{}[::attn_diag::host::kStaticGuardBytes]; ",
      number, side);
}

// Whether a variable is used in `[begin, end)` for anything but a store to it or an element of it.
bool is_read(const Syntax& s, std::size_t begin, std::size_t end, std::string_view name) {
  for (std::size_t i = begin; i < end; ++i) {
    if (!s[i].is_identifier() || !s.is(i, name)) continue;
    if (s[i - 1].is_any({".", "->", "::"})) continue;
    std::size_t after = i + 1;
    while (s.is(after, "[") || s.is(after, "."))
      after = s.is(after, "[") ? s.match(after) + 1 : after + 2;
    const bool begins_statement = s[i - 1].is_any({";", "{", "}", ")", "else"});
    if (!begins_statement || !s.is(after, "=")) return true;
    // What indexes it is used, too.
    for (std::size_t j = i + 1; j < after; ++j)
      if (s[j].is_identifier() && s.is(j, name)) return true;
  }
  return false;
}

// Statements behind a declaration that make its variables known to the executor
// (attn_diag_host/static_shared.h).
std::string declare_to_executor(const Pass& pass, std::size_t begin, std::size_t end,
                                std::size_t block_end, bool of_kernel,
                                const std::vector<std::string>& names) {
  bool is_volatile = false;
  for (std::size_t i = begin; i < end; ++i) is_volatile |= pass.syntax.is(i, "volatile");
  std::string text =
      " " + guard(begin, "behind") +
      fmt::format("struct {}attn_diag_aligned_{} {{}};", alignments(pass, begin, end), begin);
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format(
        " struct attn_diag_shared_{0}_{1} {{ static void* at() {{ return "
        "const_cast<void*>(static_cast<const volatile void*>(&{2})); }} "
        "static unsigned char* guard(bool behind) {{ return behind ? attn_diag_guard_{0}_behind : "
        "attn_diag_guard_{0}_before; }} "
        "static ::attn_diag::host::StaticSharedDeclaration declaration() {{ return {{\"{2}\", "
        "__PRETTY_FUNCTION__, sizeof({2}), alignof(attn_diag_aligned_{0}) < alignof(decltype({2})) "
        "? "
        "alignof(decltype({2})) : alignof(attn_diag_aligned_{0}), {3}u, {0}u + {1}u, {4}, {5}, "
        "&at, "
        "&guard}}; }} "
        "}}; static_cast<void>(::attn_diag::host::StaticShared<attn_diag_shared_{0}_{1}>::entry);",
        begin, i, names[i], block_around(pass.syntax, begin), of_kernel,
        is_volatile || is_read(pass.syntax, end, block_end, names[i]));
  return text;
}

// Static shared memory of the function that is being read: names that are still visible.
class StaticShared {
 public:
  // Puts around a declaration what guards and describes the variable, and a static_assert that all of them together
  // are not too large.
  void declare(Pass& pass, std::size_t begin, std::size_t end) {
    const Syntax& s = pass.syntax;
    const Function* function = s.function_around(begin);
    if (function == nullptr || begin < function->open || !s.is(end, ";")) return;
    if (function->open != x_body) x_names.clear();
    x_body = function->open;
    // Names of blocks that have ended.
    std::erase_if(x_names, [&](const Name& name) { return name.block_end < begin; });
    std::size_t block_end = end;
    for (std::size_t depth = 0; block_end < s.size(); ++block_end) {
      if (s.is(block_end, "{")) ++depth;
      if (s.is(block_end, "}") && depth-- == 0) break;
    }
    const std::vector<std::string> names = declared_names(s, begin, end);
    for (const std::string& name : names) x_names.push_back({name, block_end});
    std::string sum;
    for (const Name& name : x_names)
      sum += (sum.empty() ? "sizeof(" : " + sizeof(") + name.text + ")";
    if (sum.empty()) return;
    pass.edits.insert(
        s[end].end,
        fmt::format(
            " static_assert({} <= ::attn_diag::host::kMostStaticShared, \"{}: too much static "
            "shared memory: a block may have 48 KB (nvcc for sm_90a: 227 KB); take dynamic "
            "shared memory (extern __shared__) and cudaFuncSetAttribute for more\");",
            sum, s[function->name].text));
    pass.edits.insert(s[end].end,
                      declare_to_executor(pass, begin, end, block_end, function->is_kernel, names));
  }

 private:
  struct Name {
    std::string text;
    std::size_t block_end;
  };
  std::size_t x_body = 0;
  std::vector<Name> x_names;
};

void translate_static(Pass& pass, std::size_t begin, std::size_t word, std::size_t end) {
  const Syntax& s = pass.syntax;
  if (s.function_around(begin) != nullptr)
    pass.edits.insert(s[begin].begin, guard(begin, "before"));
  // Where it lies does not depend on what lies before it, and nothing is left out because it is never read.
  pass.edits.insert(s[begin].begin,
                    "[[gnu::used, gnu::aligned(::attn_diag::host::kStaticAlignment)]] ");
  // alignas() may not stand among the words of a type, but in front of a declaration.
  for (std::size_t i = begin; i < end; ++i) {
    if (s.is(i, "alignas") && s.is(i + 1, "(") && i > begin) {
      pass.edits.insert(s[begin].begin, pass.source(i, s.match(i + 1) + 1) + ' ');
      pass.remove(i, s.match(i + 1) + 1);
      i = s.match(i + 1);
    } else if (s.is(i, "static")) {
      pass.remove(i, i + 1);
    }
  }
  pass.replace(word, word + 1, "static thread_local");
  pass.item(ItemKind::kSharedArray, word, pass.source(begin, end));
}

// Uses of a name that are not members of something.
bool uses_name(const Syntax& s, std::size_t begin, std::size_t end, std::string_view name) {
  for (std::size_t i = begin; i < end; ++i)
    if (s[i].is_identifier() && s.is(i, name) && !s.is(i - 1, ".") && !s.is(i - 1, "->") &&
        !s.is(i - 1, "::"))
      return true;
  return false;
}

}  // namespace

void translate_shared_memory(Pass& pass) {
  const Syntax& s = pass.syntax;
  std::set<std::pair<std::size_t, std::string>> declared;  // by function body: local declarations
  struct AtNamespace {
    std::size_t from;
    DynamicArray array;
  };
  std::vector<AtNamespace> at_namespace;
  StaticShared static_shared;

  for (std::size_t i = 0; i < s.size(); ++i) {
    if (!s.is(i, "__shared__") || !pass.is_open(i)) continue;
    const std::size_t begin = s.statement_begin(i);
    const std::size_t end = s.statement_end(i);
    bool is_extern = false;
    for (std::size_t j = begin; j < end; ++j) is_extern |= s.is(j, "extern");
    if (end == s.size()) {
      pass.error(i, "'__shared__' in something that is not a declaration");
      continue;
    }
    if (!is_extern) {
      translate_static(pass, begin, i, end);
      static_shared.declare(pass, begin, end);
      continue;
    }
    const std::vector<DynamicArray> arrays = dynamic_arrays(pass, begin, end);
    const Function* function = s.function_around(i);
    std::string references;
    for (const DynamicArray& array : arrays) {
      if (function != nullptr && i > function->open) {
        declared.insert({function->open, array.name});
        references += (references.empty() ? "" : " ") + array.reference;
      } else {
        at_namespace.push_back({end, array});
      }
    }
    pass.replace(begin, end + 1, references);
    pass.item(ItemKind::kDynamicShared, i, pass.source(begin, end));
  }

  for (const Function& function : s.functions()) {
    std::string references;
    for (const AtNamespace& outer : at_namespace) {
      if (function.open < outer.from || declared.contains({function.open, outer.array.name}))
        continue;
      const std::string& name = outer.array.name;
      if (uses_name(s, function.parameters, s.match(function.parameters), name)) continue;
      if (!uses_name(s, function.open, function.close, name)) continue;
      if (!declared.insert({function.open, name}).second) continue;
      references += ' ' + outer.array.reference;
    }
    if (!references.empty()) pass.edits.insert(s[function.open].end, references);
    std::vector<std::string> names;
    for (auto it = declared.lower_bound({function.open, ""});
         it != declared.end() && it->first == function.open; ++it)
      names.push_back(it->second);
    if (!names.empty() && function.is_device)
      name_shared_pointers(pass, function, std::move(names));
  }
}

}  // namespace attn_diag::source
