#include "harness/dump/cell_reader.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <numeric>

#include "attn_diag/harness/error.h"

namespace attn_diag {
namespace {

constexpr std::int64_t kWorthMapping = 1 << 20;
const std::int64_t kPage = sysconf(_SC_PAGESIZE);

}  // namespace

void CellSlab::unmap() {
  if (x_mapping != nullptr) munmap(x_mapping, x_mapped_bytes);
  x_mapping = nullptr;
}

CellReader::CellReader(const DumpFile& file, const std::string& dataset,
                       const std::vector<std::int64_t>& shape)
    : x_document(file.document()), x_dataset(file.open(dataset, shape, x_dtype)), x_path(dataset) {
  if (x_dataset.offset < 0) return;
  x_descriptor = x_document.descriptor();
  x_position = x_dataset.offset;
  const auto element = static_cast<std::int64_t>(size_of(x_dtype));
  const std::int64_t bytes =
      std::accumulate(shape.begin(), shape.end(), element, std::multiplies<>());
  struct stat status;
  if (fstat(x_descriptor, &status) != 0 || status.st_size < x_position + bytes)
    throw Error(
        fmt::format("Dataset {} ends beyond the end of the file. Copy or write the dump "
                    "again.",
                    x_path));
  x_mappable = bytes >= kWorthMapping && x_position % element == 0;
}

const void* CellReader::read(std::int64_t at, std::int64_t n, CellSlab& slab) const {
  const std::size_t bytes = static_cast<std::size_t>(n) * size_of(x_dtype);
  const std::int64_t position = x_position + at * static_cast<std::int64_t>(size_of(x_dtype));
  if (x_mappable)
    if (const void* cells = map(position, bytes, slab)) return cells;
  slab.x_copy.resize(bytes);
  x_document.read(x_dataset, at, n, slab.x_copy.data());
  return slab.x_copy.data();
}

// Null where the file system cannot map.
const void* CellReader::map(std::int64_t position, std::size_t bytes, CellSlab& slab) const {
  slab.unmap();
  const std::int64_t begin = position / kPage * kPage;
  const auto before = static_cast<std::size_t>(position - begin);
  void* mapping = mmap(nullptr, before + bytes, PROT_READ, MAP_SHARED, x_descriptor, begin);
  if (mapping == MAP_FAILED) return nullptr;
  slab.x_mapping = mapping;
  slab.x_mapped_bytes = before + bytes;
  return static_cast<const std::byte*>(mapping) + before;
}

}  // namespace attn_diag
