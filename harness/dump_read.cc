#include <fmt/format.h>

#include <array>
#include <new>

#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/error.h"
#include "harness/capture_fields.h"
#include "harness/dump_file.h"
#include "harness/dump_layout.h"

namespace attn_diag {
namespace {

std::vector<std::byte> read_cells(hid_t dataset, DType dtype, std::int64_t cells,
                                  const std::string& path) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(cells) * size_of(dtype));
  check(H5Dread(dataset, file_type(dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()),
        "read " + path);
  return bytes;
}

void read_inputs(const DumpFile& file, Capture& c) {
  const std::array<std::vector<std::byte>*, 3> inputs{&c.q, &c.k, &c.v};
  const auto layouts = input_layouts(c.problem);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string path = fmt::format("/inputs/{}", layouts[i].name);
    const auto& shape = layouts[i].shape;
    DType dtype{};
    const Hdf5Id dataset = file.open(path, {shape.begin(), shape.end()}, dtype);
    if (dtype != c.problem.dtype)
      throw Error(
          fmt::format("Dataset {} has type {}, but the problem's is {}. Write the dump "
                      "again.",
                      path, text(dtype), text(c.problem.dtype)));
    *inputs[i] = read_cells(dataset, dtype, shape[0] * shape[1] * shape[2] * shape[3], path);
  }
}

}  // namespace

Capture read_dump(const std::string& path) {
  const Hdf5Session session;
  const DumpFile file(path);
  try {
    Capture c = file.header();
    read_inputs(file, c);
    for (std::optional<TensorData>& t : c.tensors) {
      if (!t) continue;
      const std::string dataset_path = tensor_path(kStagesGroup, t->id);
      const Hdf5Id dataset = file.open(dataset_path, t->shape, t->dtype);
      t->bytes = read_cells(dataset, t->dtype, t->size(), dataset_path);
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
