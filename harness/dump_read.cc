#include <fmt/format.h>

#include <cstring>
#include <new>

#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/error.h"
#include "harness/dump_file.h"
#include "harness/dump_layout.h"

namespace attn_diag {
namespace {

void read_uncertainty(const DumpFile& file, TensorData& to) {
  const std::string path = tensor_path(kUncertaintyGroup, to.id);
  if (!link_exists(file.id(), path)) return;
  DType dtype{};
  const Hdf5Id dataset = file.open(path, to.shape, dtype);
  if (dtype != DType::kFp32)
    throw Error(fmt::format("Dataset {} is not of 32-bit floats. Write the dump again.", path));
  const std::vector<std::byte> bytes = read_whole(dataset, dtype, to.size(), path);
  to.uncertainty.resize(static_cast<std::size_t>(to.size()));
  std::memcpy(to.uncertainty.data(), bytes.data(), bytes.size());
}

}  // namespace

Capture read_dump_header(const std::string& path) {
  const Hdf5Session session;
  return DumpFile(path).header();
}

Capture read_dump(const std::string& path) {
  const Hdf5Session session;
  const DumpFile file(path);
  try {
    Capture c = file.header();
    file.read_inputs(c);
    for (std::optional<TensorData>& t : c.tensors) {
      if (!t) continue;
      const std::string dataset_path = tensor_path(kStagesGroup, t->id);
      const Hdf5Id dataset = file.open(dataset_path, t->shape, t->dtype);
      t->bytes = read_whole(dataset, t->dtype, t->size(), dataset_path);
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
