// An array in a file, of whatever format, and what else the file says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/files.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag::files {

// Bytes [offset, offset + size) of a file, of a member of an archive, or of an array's cells. Throws Error if
// they end before.
using ReadBytes = std::function<std::vector<std::byte>(std::uint64_t offset, std::uint64_t size)>;

struct Array {
  std::string file;  // as the user named it; empty: an array in memory
  std::string name;  // within the file: "attn/query"; of a .npy file its name without the ending
  std::vector<std::int64_t> shape;
  std::string type;            // as the format spells it: "float16", "<f4", "BF16"
  std::optional<DType> dtype;  // none: not a float of ours
  // 16 bits whose meaning the format cannot say: bf16, if the user says so.
  bool opaque16 = false;
  // Why the cells cannot be read as they are, with what to do; empty: they can.
  std::string unreadable;
  // The cells, row-major and little-endian: how many bytes they take, and any of these.
  std::uint64_t bytes = 0;
  ReadBytes read;
  // Where in `file` they lie as they are; none: they are packed, or not of this machine's byte order.
  std::optional<std::uint64_t> offset;

  std::vector<std::byte> load() const;  // all of them; throws Error

  std::int64_t size() const;  // cells
  std::string where() const;  // "query of x.npz", "q.npy"
  std::string text()
      const;  // "query of x.npz, float16 [2, 8, 512, 64]"; of one in memory without the place
};

// Single values that a file holds beside its arrays, as text: "0.125", "true", "causal". Names as they
// are in the file, without the path to them. Different values of one name all stay.
using Settings = std::multimap<std::string, std::string>;

struct Contents {
  std::vector<Array> arrays;
  Settings settings;
};

// It reads the memory of `from`.
Array array_in_memory(const ForeignArray& from);

std::string shape_text(const std::vector<std::int64_t>& shape);  // "[2, 8, 512, 64]"
// Cells of a shape; throws Error, naming `what`, where that is no sensible number.
std::int64_t cells_of(const std::vector<std::int64_t>& shape, const std::string& what);

ReadBytes bytes_of_file(const std::string& path);
std::uint64_t file_size(const std::string& path);  // throws Error

// One reader a format, called in a helper except that of HDF5, which has its own. They read what the arrays are, not
// their cells, and throw Error saying what was expected, what was found and what to do.
void read_npy(const std::string& file, const std::string& name, const ReadBytes& read,
              std::uint64_t size, Contents& to);
void read_npz(const std::string& path, Contents& to);
void read_safetensors(const std::string& path, Contents& to);
void read_hdf5(const std::string& path, Contents& to);

// By what the file begins with. A folder: every .npy file in it. Whatever the bytes are, it ends with
// arrays or with an Error: what reads them is a helper process.
void read_any(const std::string& path, Contents& to);

}  // namespace attn_diag::files
