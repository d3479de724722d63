// The line at which a function that was recorded leaves attention.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "attn_diag/harness/files.h"
#include "attn_diag/harness/lines.h"

namespace attn_diag::python {

// `graph` is a dict, as attn_diag/_values.py makes it: sites (tuples of op, or -1 less it where it never ran, line,
// column, file, function, variable, conditions, uses, callers), nodes and products (buffers), outputs (of o, then of
// lse where there is one: three buffers of uint32, node, block and site of each element in memory order), replaced and
// masked (buffers), unseen, outside (accesses to memory that the function was not given: site, bytes behind the
// nearest, sentence), stored_twice, full, reason.
LineDivergence lines_of(const ForeignCase& of, const pybind11::dict& graph);

}  // namespace attn_diag::python
