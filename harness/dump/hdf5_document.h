// What an HDF5 file holds. libhdf5 crashes, loops and takes all memory on files that are damaged or made to
// do that, so it reads in a helper process; here is what that found, and cells that lie in the file as they
// are are read from it directly.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/kernels/problem.h"
#include "harness/base/helper.h"

namespace attn_diag {

struct Hdf5Attribute {
  enum class Kind : std::uint8_t { kText, kSigned, kUnsigned, kReal, kTruth, kOther };
  Kind kind = Kind::kOther;
  bool list = false;                  // else a single value
  std::vector<std::string> texts;     // of kText
  std::vector<std::uint64_t> values;  // of the others, as 64 bits each; kOther has none
};

struct Hdf5Object {
  std::string path;  // "stages/qk/S"; "" is the root
  bool is_dataset = false;
  std::map<std::string, Hdf5Attribute> attributes;

  // For datasets.
  std::vector<std::int64_t> shape;
  std::string type;            // "32-bit integer" and the like, for messages
  std::optional<DType> dtype;  // a float of ours, in the byte order of this machine if `native`
  bool native = false;
  std::int64_t offset = -1;  // where in the file its cells lie as they are; -1: not so
  std::string refused;       // why its cells cannot be read, as a sentence; empty: they can
};

class Hdf5Document {
 public:
  // Throws Error saying what is wrong with the file.
  explicit Hdf5Document(const std::string& path);
  ~Hdf5Document();
  Hdf5Document(const Hdf5Document&) = delete;
  Hdf5Document& operator=(const Hdf5Document&) = delete;

  const std::string& file() const { return x_path; }
  int descriptor() const { return x_descriptor; }
  const Hdf5Object& root() const { return x_objects.front(); }
  const std::vector<Hdf5Object>& objects() const { return x_objects; }
  // By its path, with or without a leading "/"; null if there is none.
  const Hdf5Object* find(std::string_view path) const;

  // Cells [at, at + n) of a dataset, row-major and little-endian, in its dtype; without one, as 16-bit
  // integers. Any thread may read. Throws Error.
  void read(const Hdf5Object& dataset, std::int64_t at, std::int64_t n, std::byte* cells) const;
  Bytes read(const Hdf5Object& dataset) const;

 private:
  Bytes ask(const Bytes& question) const;

  std::string x_path;
  int x_descriptor = -1;
  std::unique_ptr<Helper> x_helper;
  std::vector<Hdf5Object> x_objects;
  std::map<std::string, std::size_t, std::less<>> x_by_path;
};

// Whether a file, if it is a regular one, begins as HDF5 files do.
bool is_hdf5_file(const std::string& path);

// Throw Error naming the attribute if it is missing or of another kind; numbers may be stored in any width.
void read_attribute(const Hdf5Object& object, const char* name, std::string& value);
void read_attribute(const Hdf5Object& object, const char* name, std::int64_t& value);
void read_attribute(const Hdf5Object& object, const char* name, std::uint64_t& value);
void read_attribute(const Hdf5Object& object, const char* name, double& value);
void read_attribute(const Hdf5Object& object, const char* name, std::vector<std::int64_t>& values);
void read_attribute(const Hdf5Object& object, const char* name, std::vector<std::string>& values);
bool has_attribute(const Hdf5Object& object, const char* name);

}  // namespace attn_diag
