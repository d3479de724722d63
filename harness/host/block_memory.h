// The shared memory of a block: where it lies here and on a GPU, what it is filled with, and the guards
// beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/host/block_reporter.h"
#include "harness/host/dynamic_shared.h"
#include "harness/host/shared_window.h"

namespace attn_diag::host {

class __attribute__((visibility("hidden"))) BlockMemory {
 public:
  static constexpr const char* kPlaceNotKnown =
      "its alignment depends on the shared variables before it, of which nvcc leaves out what it "
      "finds unused: align the array itself";

  explicit BlockMemory(BlockReporter& block) : x_block(block) {}

  void begin_launch(const LaunchPlan& plan);
  void poison();
  // After a block without a checker: a store beside shared memory becomes its finding.
  void check_guards();

  DynamicShared& dynamic() { return x_dynamic; }
  const DynamicShared& dynamic() const { return x_dynamic; }
  std::byte* static_shared() const { return x_static_shared; }  // null: none
  std::uintptr_t static_storage() const { return x_static_storage; }
  bool is_shared(std::uintptr_t at) const { return x_window.contains(at); }
  // The address on a GPU, modulo any alignment; for a static variable, its place among those of its function.
  std::uintptr_t device_address(std::uintptr_t at) const;
  // Whether nvcc may have put the variable so that the address is a multiple, as far as this run shows.
  bool may_be_aligned(std::uintptr_t at, std::size_t alignment) const;
  // The 32-bit address of a pointer to shared memory, and back.
  std::uint32_t shared_address(const void* generic, const char* file, int line);
  void* shared_pointer(std::uint32_t shared, const char* file, int line);
  [[noreturn]] void report_not_shared(const char* does, const void* pointer, const char* file,
                                      int line);

 private:
  void record_outside(const std::string& name, std::size_t bytes, std::int64_t offset);

  BlockReporter& x_block;
  DynamicShared x_dynamic;
  std::uintptr_t x_static_storage = 0;   // the library's thread-local storage; 0: none
  std::byte* x_static_shared = nullptr;  // the part of it that is shared memory; null: none
  SharedWindow x_window;
};

}  // namespace attn_diag::host
