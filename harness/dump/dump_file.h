// An open dump: everything but the tensors' cells.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "harness/dump/hdf5_document.h"

namespace attn_diag {

class DumpFile {
 public:
  // Checks that the file is a whole dump of a schema this program reads, and reads its header.
  // Throws Error saying what was expected, what was found and what to do.
  explicit DumpFile(const std::string& path);

  // Problem, geometry, arithmetic, provenance, region, exemptions, coverage, notes. Tensors that
  // the file has are there with type and shape, but without bytes; q, k, v are empty.
  const Capture& header() const { return x_header; }
  const Hdf5Document& document() const { return *x_document; }
  bool has(const std::string& path) const { return x_document->find(path) != nullptr; }

  // Finds a dataset, checks its shape and that its type is one of ours, and says which.
  const Hdf5Object& open(const std::string& dataset, const std::vector<std::int64_t>& shape,
                         DType& dtype) const;

  // Sets q, k and v.
  void read_inputs(Capture& capture) const;

 private:
  void require_dump(const std::string& path);
  void read_header();
  void read_tensor_headers();

  const Hdf5Object& group(const std::string& path) const;

  std::unique_ptr<Hdf5Document> x_document;
  Capture x_header;
};

}  // namespace attn_diag
