#include <fmt/format.h>

#include <cstring>
#include <new>

#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/error.h"
#include "harness/dump/dump_file.h"
#include "harness/dump/dump_layout.h"

namespace attn_diag {
namespace {

void read_uncertainty(const DumpFile& file, TensorData& to) {
  const std::string path = tensor_path(kUncertaintyGroup, to.id);
  if (!file.has(path)) return;
  DType dtype{};
  const Hdf5Object& dataset = file.open(path, to.shape, dtype);
  if (dtype != DType::kFp32)
    throw Error(fmt::format("Dataset {} is not of 32-bit floats. Write the dump again.", path));
  const std::vector<std::byte> bytes = file.document().read(dataset);
  to.uncertainty.resize(static_cast<std::size_t>(to.size()));
  std::memcpy(to.uncertainty.data(), bytes.data(), bytes.size());
  for (const float x : to.uncertainty)
    if (x < 0) throw Error(fmt::format("Dataset {} has a value below 0: {}.", path, x));
}

}  // namespace

Capture read_dump_header(const std::string& path) { return DumpFile(path).header(); }

std::optional<std::string> read_dump_lines(const std::string& path) {
  const DumpFile file(path);
  const Hdf5Object* const group = file.document().find(kLinesGroup);
  if (group == nullptr) return std::nullopt;
  std::string json;
  try {
    read_attribute(*group, kLinesAttribute, json);
  } catch (const Error& e) {
    throw Error(fmt::format("{} cannot be read as a dump. {}", path, e.what()));
  }
  return json;
}

Capture read_dump(const std::string& path) {
  const DumpFile file(path);
  try {
    Capture c = file.header();
    file.read_inputs(c);
    for (std::optional<TensorData>& t : c.tensors) {
      if (!t) continue;
      const std::string dataset_path = tensor_path(kStagesGroup, t->id);
      const Hdf5Object& dataset = file.open(dataset_path, t->shape, t->dtype);
      t->bytes = file.document().read(dataset);
      read_uncertainty(file, *t);
    }
    return c;
  } catch (const Error& e) {
    throw Error(fmt::format("{} cannot be read as a dump. {}", path, e.what()));
  } catch (const std::bad_alloc&) {
    throw Error(
        fmt::format("{} does not fit into memory. Compare it with another dump, which reads "
                    "in pieces, or dump less of it.",
                    path));
  }
}

}  // namespace attn_diag
