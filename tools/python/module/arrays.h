// Arrays of Python objects, as views of their memory.
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "attn_diag/harness/files.h"

namespace attn_diag::python {

// `object` is a DLPack capsule of memory of this machine's, or has the buffer protocol; with `is_bf16` its 16-bit
// integers are bfloat16. The array reads the object's memory, which has to live as long. Throws pybind11::type_error
// for elements that are no floats, naming the role.
class Borrowed {
 public:
  Borrowed(ForeignRole role, const pybind11::object& object, bool is_bf16);

  const ForeignArray& array() const { return x_array; }

 private:
  void take_capsule(const pybind11::object& object);
  void take_buffer(const pybind11::object& object);
  void set_dtype(char kind, std::size_t bits);

  pybind11::object x_owner;
  pybind11::buffer_info x_buffer;
  bool x_is_bf16;
  ForeignArray x_array;
};

// Made from a dict of role to (object, is_bf16).
class BorrowedCase {
 public:
  explicit BorrowedCase(const pybind11::dict& arrays);

  std::vector<ForeignArray> arrays() const;

 private:
  std::vector<Borrowed> x_borrowed;
};

}  // namespace attn_diag::python
