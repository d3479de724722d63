// Reading a dataset piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/dump/dump_file.h"

namespace attn_diag {

// The cells a reader has last put into it: mapped from the file, or a copy.
class CellSlab {
 public:
  CellSlab() = default;
  ~CellSlab() { unmap(); }
  CellSlab(const CellSlab&) = delete;
  CellSlab& operator=(const CellSlab&) = delete;

 private:
  friend class CellReader;
  void unmap();

  void* x_mapping = nullptr;
  std::size_t x_mapped_bytes = 0;
  std::vector<std::byte> x_copy;
};

// Reads any run of cells in row-major order. Where the cells lie in the file as they are, the file
// itself is read, from any number of threads at once: large datasets are mapped a slab at a time,
// which saves copying them. Chunked or compressed datasets go through the library in its helper, one
// thread at a time. A mapped file that another program shortens meanwhile ends this program with SIGBUS; dumps
// are replaced whole and never shortened by attn-diag.
class CellReader {
 public:
  // The file has to live for as long as this does.
  CellReader(const DumpFile& file, const std::string& dataset,
             const std::vector<std::int64_t>& shape);

  DType dtype() const { return x_dtype; }
  const std::string& dataset() const { return x_path; }
  // The cells [at, at + n), aligned for their type; valid until the slab is used again.
  // Throws Error if they cannot be read.
  const void* read(std::int64_t at, std::int64_t n, CellSlab& slab) const;

 private:
  const void* map(std::int64_t position, std::size_t bytes, CellSlab& slab) const;

  const Hdf5Document& x_document;
  DType x_dtype{};
  const Hdf5Object& x_dataset;
  std::string x_path;
  int x_descriptor = -1;        // of the file; -1: not readable directly
  std::int64_t x_position = 0;  // of the first cell in the file
  bool x_mappable = false;
};

}  // namespace attn_diag
