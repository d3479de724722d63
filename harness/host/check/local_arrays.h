// The local arrays of a thread that were declared without values: which bytes have been written since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/host/check/array_shape.h"

namespace attn_diag::host {

struct LocalArray {
  std::uintptr_t begin = 0;
  std::string name;
  ArrayShape shape;
  std::vector<bool> written;        // by byte
  std::vector<std::byte> contents;  // when it was declared
};

class LocalArrays {
 public:
  void declare(std::uintptr_t begin, std::size_t bytes, const char* name, ArrayShape shape);
  void forget_all() { x_arrays.clear(); }
  bool any() const { return !x_arrays.empty(); }

  // Accesses by code whose stack frame is at `frame`: arrays of frames below it are gone.
  void write(std::uintptr_t at, std::size_t bytes, std::uintptr_t frame);
  // Whether those of these bytes that lie in arrays have all been written.
  bool is_written(std::uintptr_t at, std::size_t bytes, std::uintptr_t frame);
  // The array with a byte that is read and was never written; null: none. Code without call-outs may have written
  // it, which shows where its contents have changed.
  const LocalArray* read(std::uintptr_t at, std::size_t bytes, std::uintptr_t frame);

 private:
  LocalArray* find(std::uintptr_t at, std::uintptr_t frame);

  std::vector<LocalArray> x_arrays;
};

}  // namespace attn_diag::host
