// The code of a candidate, and what is read from it by subject.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "harness/toolchain/adapt/facts.h"

namespace attn_diag::adapt {

class FactsCode {
 public:
  // Adds to `notes` what was found and guessed.
  FactsCode(const Model& model, const Candidate& c, std::vector<Note>& notes);

  const Model& model() const { return x_model; }
  const source::Syntax& syntax() const { return x_model.syntax(); }
  const Candidate& candidate() const { return x_c; }
  // The candidate, the kernels it launches, and the functions of the source that those call.
  const std::vector<const FunctionModel*>& functions() const { return x_functions; }

  std::vector<Note>& notes() { return x_notes; }
  void note(NoteKind kind, std::string text) { x_notes.push_back({kind, std::move(text)}); }

  // Calls f(function, index of the token) for the bodies of all functions.
  template <class F>
  void each_token(const F& f) const {
    for (const FunctionModel* function : x_functions)
      for (std::size_t i = function->open; i < function->close; ++i) f(*function, i);
  }
  // Whether a word of the functions, or of macros that they use, contains any of the parts.
  bool mentions_part(std::initializer_list<const char*> parts) const;
  // Whether the file has one of these words, wherever it stands.
  bool file_has(std::initializer_list<const char*> words) const;
  // Roles of the candidate, or of the kernels whose launches are taken out of it.
  bool has(Role role) const;

 private:
  const Model& x_model;
  const Candidate& x_c;
  std::vector<Note>& x_notes;
  std::vector<const FunctionModel*> x_functions;
  std::vector<std::string> x_macros;  // what function-like ones stand for
};

std::string lower(std::string text);

// facts_sizes.cc; of multiples, after tiles.
void read_sizes(FactsCode& code, Facts& facts);
void read_tiles(FactsCode& code, Facts& facts);
void read_head_dims(FactsCode& code, Facts& facts);
void read_multiples(FactsCode& code, Facts& facts);
// facts_fixed.cc; before sizes.
void read_fixed(FactsCode& code, Facts& facts);
// facts_splits.cc; after tiles and types.
void read_splits(FactsCode& code, Facts& facts);
// facts_values.cc; of arithmetic, after types.
void read_types(FactsCode& code, Facts& facts);
void read_arithmetic(FactsCode& code, Facts& facts);
void read_outputs(FactsCode& code, Facts& facts);
void read_host_memory(FactsCode& code, Facts& facts);
// facts_layout.cc; of the layout, after sizes.
void read_mask(FactsCode& code, Facts& facts);
void read_layout(FactsCode& code, Facts& facts);
// facts_cache.cc; after the layout.
void read_cache(FactsCode& code, Facts& facts);
void read_stride_arrays(FactsCode& code, Facts& facts);

}  // namespace attn_diag::adapt
