#include "harness/cell_reader.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>

#include "attn_diag/harness/error.h"

namespace attn_diag {
namespace {

// Among the threads of one session; sessions exclude each other already.
std::mutex& library_turn() {
  static std::mutex mutex;
  return mutex;
}

constexpr std::int64_t kWorthMapping = 1 << 20;
const std::int64_t kPage = sysconf(_SC_PAGESIZE);

}  // namespace

void CellSlab::unmap() {
  if (x_mapping != nullptr) munmap(x_mapping, x_mapped_bytes);
  x_mapping = nullptr;
}

CellReader::CellReader(const DumpFile& file, const std::string& dataset,
                       const std::vector<std::int64_t>& shape)
    : x_path(dataset),
      x_shape(shape),
      x_dataset(file.open(dataset, shape, x_dtype)),
      x_type(file_type(x_dtype)) {
  const Hdf5Id creation(check(H5Dget_create_plist(x_dataset), "read a dataset's layout"), H5Pclose);
  const bool plain = H5Pget_layout(creation) == H5D_CONTIGUOUS;
  const haddr_t address = plain ? H5Dget_offset(x_dataset) : HADDR_UNDEF;
  void* descriptor = nullptr;
  if (address == HADDR_UNDEF || H5Fget_vfd_handle(file.id(), H5P_DEFAULT, &descriptor) < 0) return;
  x_descriptor = *static_cast<const int*>(descriptor);
  x_position = static_cast<std::int64_t>(address);
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
  if (x_descriptor >= 0)
    read_directly(position, bytes, slab.x_copy.data());
  else
    read_through_library(at, n, slab.x_copy.data());
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

void CellReader::read_directly(std::int64_t position, std::size_t bytes, std::byte* cells) const {
  while (bytes > 0) {
    const ssize_t got = pread(x_descriptor, cells, bytes, position);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw Error(fmt::format("Dataset {} could not be read: {}. Copy or write the dump again.",
                              x_path, got == 0 ? "the file ends early" : std::strerror(errno)));
    cells += got;
    position += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

// A run of cells is a sequence of boxes, each full along its last axes.
void CellReader::read_through_library(std::int64_t at, std::int64_t n, std::byte* cells) const {
  const std::lock_guard lock(library_turn());
  const Hdf5Quiet quiet;
  const std::string doing = "read " + x_path;
  const Hdf5Id file_space(check(H5Dget_space(x_dataset), doing), H5Sclose);
  const std::size_t rank = x_shape.size();
  while (n > 0) {
    std::vector<hsize_t> start(rank), count(rank, 1);
    std::int64_t rest = at;
    for (std::size_t i = rank; i-- > 0; rest /= x_shape[i])
      start[i] = static_cast<hsize_t>(rest % x_shape[i]);
    std::int64_t box = 1;  // cells of the axes behind `axis`, all of them taken
    std::size_t axis = rank - 1;
    while (axis > 0 && start[axis] == 0 && box * x_shape[axis] <= n) {
      count[axis] = static_cast<hsize_t>(x_shape[axis]);
      box *= x_shape[axis--];
    }
    const std::int64_t along =
        std::min(x_shape[axis] - static_cast<std::int64_t>(start[axis]), n / box);
    count[axis] = static_cast<hsize_t>(along);
    box *= along;
    check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start.data(), nullptr, count.data(),
                              nullptr),
          doing);
    const auto extent = static_cast<hsize_t>(box);
    const Hdf5Id memory_space(check(H5Screate_simple(1, &extent, nullptr), doing), H5Sclose);
    check(H5Dread(x_dataset, x_type, memory_space, file_space, H5P_DEFAULT, cells), doing);
    cells += box * static_cast<std::int64_t>(size_of(x_dtype));
    at += box;
    n -= box;
  }
}

}  // namespace attn_diag
