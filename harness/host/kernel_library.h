// The shared object a kernel lies in: its code, its thread-local storage, the kernel's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "attn_diag_host/launch.h"

namespace attn_diag::host {

struct KernelLibrary {
  std::string path;               // empty: the main program
  std::uintptr_t base = 0;        // where its addresses count from
  std::uintptr_t code_begin = 0;  // of its executable segment
  std::uintptr_t code_end = 0;
  std::size_t tls_module = 0;  // 0: has no thread-local storage
  std::size_t tls_bytes = 0;
  std::size_t tls_alignment = 0;
  bool is_main_program = false;

  bool has_code_at(std::uintptr_t pc) const { return pc >= code_begin && pc < code_end; }
};

// Whether this is in what kernels call for the address of a thread-local variable, short of its slow path.
bool is_in_tls_accessor(std::uintptr_t pc);

KernelLibrary find_library(const void* kernel);

// This thread's copy of the library's thread-local storage, allocated if need be.
void* thread_storage(const KernelLibrary& library);

// What ends in a balanced pair of brackets, without that pair and what is in it.
std::string_view without_last(std::string_view name, char open, char close);
// "void fa1<64>(float*)" as "fa1<64>".
std::string without_signature(std::string name);

// The kernel's demangled name, without its parameters.
std::string kernel_name(const void* kernel);
// As above, or as the launch was written where `kernel` does not name it.
std::string kernel_name(const KernelCall& call);

}  // namespace attn_diag::host
