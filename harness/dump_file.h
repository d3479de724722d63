// An open dump: everything but the tensors' cells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "harness/hdf5_handle.h"

namespace attn_diag {

// Needs an Hdf5Session for as long as it lives.
class DumpFile {
 public:
  // Checks that the file is a whole dump of a schema this program reads, and reads its header.
  // Throws Error saying what was expected, what was found and what to do.
  explicit DumpFile(const std::string& path);

  // Problem, geometry, arithmetic, provenance, region, exemptions, coverage, notes. Tensors that
  // the file has are there with type and shape, but without bytes; q, k, v are empty.
  const Capture& header() const { return x_header; }
  hid_t id() const { return x_file; }

  // Opens a dataset, checks its shape and that its type is one of ours, and says which.
  Hdf5Id open(const std::string& dataset, const std::vector<std::int64_t>& shape,
              DType& dtype) const;

  // Sets q, k and v.
  void read_inputs(Capture& capture) const;

 private:
  void require_dump(const std::string& path);
  void read_header();
  void read_tensor_headers();

  Hdf5Id x_file;
  Capture x_header;
};

// A dataset's cells as they are stored.
std::vector<std::byte> read_whole(hid_t dataset, DType dtype, std::int64_t cells,
                                  const std::string& path);

}  // namespace attn_diag
