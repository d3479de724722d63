// The static shared arrays of a kernel library, from its symbol table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/host/check/array_shape.h"
#include "harness/host/kernel_library.h"

namespace attn_diag::host {

struct StaticArray {
  std::uintptr_t begin = 0;  // from the start of the library's thread-local storage
  std::size_t bytes = 0;
  std::string name;      // as it is declared: "sK"
  std::string function;  // that declares it, demangled; empty: none
  // The compiler's, beside an array of a class type: set by the poison, so that nothing is constructed.
  bool is_guard = false;
  // For device variables. Bytes behind it that nobody may use; is_constant: it cannot be written.
  std::size_t guard_bytes = 0;
  bool is_constant = false;
  ArrayShape shape;
};

// "sK" of the symbol "_ZZ6kernelvE2sK".
std::string declared_name(const char* symbol);

// Empty if the library is stripped.
std::vector<StaticArray> static_arrays(const KernelLibrary& library);

// Its variables, __device__ and __constant__ ones among them, at their addresses from the library's base.
std::vector<StaticArray> device_variables(const KernelLibrary& library);

}  // namespace attn_diag::host
