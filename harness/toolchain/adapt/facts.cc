#include "harness/toolchain/adapt/facts.h"

#include <algorithm>
#include <cctype>

#include "harness/toolchain/adapt/codes.h"
#include "harness/toolchain/adapt/facts_code.h"
#include "harness/toolchain/adapt/slice.h"

namespace attn_diag::adapt {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

FactsCode::FactsCode(const Model& model, const Candidate& c, std::vector<Note>& notes)
    : x_model(model), x_c(c), x_notes(notes) {
  x_functions.push_back(c.function);
  for (const FunctionModel* kernel : kernels_of(model, *c.function))
    if (kernel != c.function) x_functions.push_back(kernel);
  // Device functions that those call, and host functions in between; not a reference on the CPU.
  for (std::size_t i = 0; i < x_functions.size(); ++i)
    for (const FunctionModel& f : model.functions())
      if (x_functions[i]->calls.count(f.name) > 0 &&
          (f.is_kernel || f.is_device || !kernels_of(model, f).empty()) &&
          std::find(x_functions.begin(), x_functions.end(), &f) == x_functions.end())
        x_functions.push_back(&f);
  std::vector<std::string> names;
  each_token([&](const FunctionModel&, std::size_t i) {
    if (syntax()[i].is_identifier()) names.emplace_back(syntax()[i].text);
  });
  std::set<std::string> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto macro = model.code().calls.find(names[i]);
    if (macro == model.code().calls.end() || !seen.insert(names[i]).second) continue;
    x_macros.push_back(macro->second);
    for (const std::string& inner : names_in(macro->second)) names.push_back(inner);
  }
}

bool FactsCode::mentions_part(std::initializer_list<const char*> parts) const {
  bool found = false;
  for (const std::string& macro : x_macros)
    for (const char* part : parts) found |= macro.find(part) != std::string::npos;
  each_token([&](const FunctionModel&, std::size_t i) {
    for (const char* part : parts) found |= syntax()[i].text.find(part) != std::string_view::npos;
  });
  return found;
}

bool FactsCode::file_has(std::initializer_list<const char*> words) const {
  for (std::size_t i = 0; i < syntax().size(); ++i)
    for (const char* word : words)
      if (syntax().is(i, word)) return true;
  return false;
}

bool FactsCode::has(Role role) const {
  if (x_c.has(role)) return true;
  if (x_c.way != Way::kLaunchCode) return false;
  for (const FunctionModel* f : x_functions)
    if (f->is_kernel)
      for (const Classified& r : classify(f->parameters))
        if (r.role == role) return true;
  return false;
}

Facts gather(const Model& model, const Candidate& c, std::optional<bool> bshd,
             std::vector<Note>& notes) {
  FactsCode code(model, c, notes);
  Facts facts;
  facts.given_bshd = bshd;
  for (const auto read :
       {read_fixed, read_sizes, read_tiles, read_types, read_splits, read_head_dims,
        read_arithmetic, read_outputs, read_mask, read_layout, read_codes, read_cache,
        read_stride_arrays, read_multiples, read_host_memory})
    read(code, facts);
  return facts;
}

}  // namespace attn_diag::adapt
