// Errors a user can act on: what was expected, what was found, what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace attn_diag {

// Process exit codes, as cmp and h5diff have them.
enum class ExitCode : int {
  kAgrees = 0,
  kDiverges = 1,
  kCouldNotCompare = 2,  // bad usage, bad file, unsupported, nothing compared
  kInternal = 3,
};

// Thrown for everything that ends with kCouldNotCompare. what() is one or a few complete sentences,
// without a trailing newline and without a prefix such as "error:".
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The kernel did what leaves no usable result: it wrote outside what it was given, or did not complete.
class KernelFault : public Error {
 public:
  using Error::Error;
};

// It launched a kernel that its library was not built for, one of a few kernels: see build::BuildRequest.
class KernelLeftOut : public KernelFault {
 public:
  using KernelFault::KernelFault;
};

// The kernel's own host code refused the problem, as by Call::refuse().
class RefusedCall : public Error {
 public:
  using Error::Error;
};

}  // namespace attn_diag
