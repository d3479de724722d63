// Where the static shared variables of a kernel library lie: in its thread-local storage, and on a GPU.
#pragma once

#include <bitset>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attn_diag_host/static_shared.h"
#include "harness/host/kernel_library.h"

namespace attn_diag::host {

struct StaticVariable {
  std::uintptr_t begin = 0;  // from the start of the library's thread-local storage
  std::size_t bytes = 0;
  std::string name;
  std::size_t alignment = 1;  // as declared
  // Where nvcc puts it in the shared memory of a kernel that declares it, if it keeps all before it that is
  // read.
  std::size_t device_offset = 0;
};

// Places modulo kStaticAlignment, which all alignments divide.
using StaticPlaces = std::bitset<kStaticAlignment>;

struct StaticLayout {
  // The part of the thread-local storage that is shared memory and what guards it.
  std::uintptr_t begin = 0, end = 0;
  // Known only for translated sources. Sorted by begin.
  std::vector<StaticVariable> variables;
  // What must keep its fill: the guards beside variables, and what lies between a variable and its guard. Sorted by
  // begin.
  struct Guard {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    auto operator<=>(const Guard&) const = default;
  };
  std::vector<Guard> guards;

  // Variables of a function that are read, in nvcc's order.
  struct Function {
    bool is_kernel = false;  // else they lie behind those of its caller
    std::vector<StaticVariable> variables;
  };
  std::vector<Function> functions;

  std::size_t bytes() const { return end - begin; }
  // Where nvcc may begin the variable. It leaves out variables that it finds unused, but none of those said to be
  // used.
  StaticPlaces device_places(const StaticVariable& wanted,
                             const std::function<bool(const StaticVariable&)>& is_used) const;
  // The variable that has the byte, or null.
  const StaticVariable* find(std::uintptr_t offset) const;
  // The variable outside of which a store to this guard's byte went, and where, counted from its begin.
  struct Outside {
    const StaticVariable* variable = nullptr;
    std::int64_t offset = 0;
  };
  Outside nearest(std::uintptr_t offset) const;
};

// Not to be called by two threads at a time. Valid until the next library is loaded.
const StaticLayout& static_layout(const KernelLibrary& library);

}  // namespace attn_diag::host
