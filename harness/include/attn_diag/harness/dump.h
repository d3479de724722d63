// Dumps: captures in HDF5 files, schema attn-diag/1 (docs/schema.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "attn_diag/harness/capture.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

inline constexpr const char* kSchema = "attn-diag/1";

struct DumpOptions {
  bool force = false;  // overwrite an existing file
  int deflate = 0;     // 0: contiguous; 1..9: chunked by tile and compressed
  bool with_reference =
      false;  // also /reference and /bound (needs capture.problem etc. to be complete)
  int threads = 0;
  // What a trace found of the line, as JSON (docs/reports.md, line_divergence); empty: nothing is stored.
  std::string lines = {};
};

// Writes to a temporary name in the same directory and renames when complete; on any failure the
// temporary is removed and an existing file is untouched. Throws Error (exists, not writable, disk
// full ...).
void write_dump(const std::string& path, const Capture& capture, const DumpOptions& options);

// Throws Error for a missing, truncated, foreign or newer-schema file.
Capture read_dump(const std::string& path);
// As read_dump() without the cells: tensors have their shape and no bytes; q, k and v are empty.
Capture read_dump_header(const std::string& path);
// DumpOptions::lines of a dump; none: it holds none.
std::optional<std::string> read_dump_lines(const std::string& path);

}  // namespace attn_diag
