// A Python function as a kernel of the harness.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <string>

#include "attn_diag/harness/files.h"
#include "attn_diag/harness/inputs.h"
#include "attn_diag/harness/kernel.h"

namespace attn_diag::python {

// While it lives the kernel's runs, on this thread, call the function.
class Function {
 public:
  // `call` takes q, k and v as memoryviews of bytes in the case's dtype and layout, and the tuple (batch, heads,
  // kv_heads, seqlen_q, seqlen_k, head_dim, head_dim_v). It returns a dict of role to (object, is_bf16), as
  // BorrowedCase takes it, with q, k and v as the function left them, o, and lse if `example` has it. `example` is
  // a case that the function computed before: it says what problems are supported, and as which type o is taken.
  // `square`: a causal mask is known of as many queries as keys alone.
  Function(std::string name, pybind11::function call, const ForeignCase& example,
           bool square = false);
  ~Function();
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  Kernel kernel() const { return Kernel::of_caller(x_name, x_info); }
  const InputData& inputs() const { return x_inputs; }
  // What the function raised, if it did, in place of the Error that was made of it.
  void rethrow() const;
  // Whether it raised something that is no Exception: Ctrl-C, exit().
  bool was_interrupted() const { return x_interrupted; }

 private:
  static Status run(const RunRequest& request);
  void call(const RunRequest& request);

  std::string x_name;
  pybind11::function x_call;
  InputData x_inputs;
  bool x_has_lse;
  DType x_output;
  std::string x_mask;
  Support x_support;
  KernelInfo x_info;
  std::exception_ptr x_raised;
  bool x_interrupted = false;
};

}  // namespace attn_diag::python
