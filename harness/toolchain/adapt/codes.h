// Inputs of 8-bit codes with scales: which types are codes, and which parameters are of them.
#pragma once

#include <string>
#include <vector>

#include "harness/toolchain/adapt/candidates.h"
#include "harness/toolchain/adapt/facts_code.h"

namespace attn_diag::adapt {

// Whether a tensor of elements of this type is one of codes: "int8_t", "__nv_fp8_e4m3", "char4".
bool is_code_type(const std::string& element);

// Scales and zeros of tensors that are codes: sets their roles, and which tensor they are of. Before other
// scales are looked at.
void settle_codes(const std::vector<Parameter>& parameters, std::vector<Classified>& out);

// Why codes among these parameters cannot be declared; empty: they can, or there are none.
std::string codes_not_declared(const Model& model, const std::vector<Parameter>& parameters,
                               const std::vector<Classified>& roles);

// The types of codes and what has a scale of its own, for the declaration. After the layout.
void read_codes(FactsCode& code, Facts& facts);

}  // namespace attn_diag::adapt
