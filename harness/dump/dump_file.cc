#include "harness/dump/dump_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "attn_diag/harness/check_problem.h"
#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/error.h"
#include "harness/capture/capture_fields.h"
#include "harness/capture/consistency.h"
#include "harness/dump/dump_layout.h"

namespace attn_diag {
namespace {

constexpr std::int64_t kMostRuns = 1'000'000;

// Reads a visited field: the reverse of the writer's.
class AttributeReader {
 public:
  AttributeReader(const Hdf5Object& object, const char* group) : x_object(object), x_group(group) {}

  template <class T>
  void operator()(const char* field, T& value) const {
    // Attributes that came after the first dumps of this schema: theirs are the defaults.
    if (is_younger(field) && !has_attribute(x_object, field)) return;
    try {
      read(field, value);
    } catch (const Error& e) {
      throw Error(fmt::format("Group {}: {}", x_group, e.what()));
    }
  }

 private:
  static bool is_younger(std::string_view field) {
    return field == "scores" || field == "partial_stats" || field == "part";
  }

  template <class T>
  void read(const char* field, T& value) const {
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::uint64_t>) {
      read_attribute(x_object, field, value);
    } else if constexpr (std::is_floating_point_v<T>) {
      double wide = 0;
      read_attribute(x_object, field, wide);
      value = static_cast<T>(wide);
    } else if constexpr (std::is_integral_v<T>) {
      std::int64_t wide = 0;
      read_attribute(x_object, field, wide);
      value = static_cast<T>(wide);
      if (static_cast<std::int64_t>(value) != wide)
        throw Error(fmt::format("Attribute {} is {}, which is out of range.", field, wide));
    } else {
      std::string spelling;
      read_attribute(x_object, field, spelling);
      if (!from_text(spelling, value))
        throw Error(
            fmt::format("Attribute {} is \"{}\", which is none of its values.", field, spelling));
    }
  }

  const Hdf5Object& x_object;
  const char* x_group;
};

std::uint64_t parse_hash(const std::string& text) {
  std::uint64_t hash = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (error != std::errc{} || end != text.data() + text.size())
    throw Error(fmt::format("\"{}\" is not the hash of a source file.", text));
  return hash;
}

void read_sources(const Hdf5Object& provenance, std::vector<SourceState>& sources) {
  std::vector<std::string> paths, built, disk;
  read_attribute(provenance, "source_paths", paths);
  read_attribute(provenance, "source_built_hashes", built);
  read_attribute(provenance, "source_disk_hashes", disk);
  if (paths.size() != built.size() || paths.size() != disk.size())
    throw Error("Group /provenance: the lists of source files differ in length.");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const bool found = !disk[i].empty();
    sources.push_back({paths[i], parse_hash(built[i]), found ? parse_hash(disk[i]) : 0, found});
  }
}

template <std::size_t kCount>
std::array<std::int64_t, kCount> read_array(const Hdf5Object& object, const char* field) {
  std::vector<std::int64_t> values;
  read_attribute(object, field, values);
  if (values.size() != kCount)
    throw Error(
        fmt::format("Attribute {} has {} values, but needs {}.", field, values.size(), kCount));
  std::array<std::int64_t, kCount> array{};
  std::copy(values.begin(), values.end(), array.begin());
  return array;
}

void check_region(const Region& region, const Problem& p) {
  const std::array<std::int64_t, 3> sizes{p.batch, p.heads, p.seqlen_q};
  for (std::size_t i = 0; i < 3; ++i)
    if (region.origin[i] < 0 || region.extent[i] < 0 || region.extent[i] > sizes[i] ||
        region.origin[i] > sizes[i] - region.extent[i])
      throw Error(fmt::format("The region, {} from {} on, is not within batch, heads, seqlen_q {}.",
                              region.extent, region.origin, sizes));
}

// A number of cells of a tensor.
std::int64_t read_cells(const Hdf5Object& dataset, const char* field, const TensorData& data) {
  std::int64_t cells = 0;
  read_attribute(dataset, field, cells);
  if (cells < 0 || cells > data.size())
    throw Error(fmt::format("Attribute {} of {} is {}, but the tensor has {} cells.", field,
                            name(data.id), cells, data.size()));
  return cells;
}

std::array<std::int64_t, 5> read_index(const Hdf5Object& dataset, const char* field,
                                       const TensorData& data) {
  const Tensor t = data.id;
  std::vector<std::int64_t> found;
  read_attribute(dataset, field, found);
  if (static_cast<int>(found.size()) != info(t).rank)
    throw Error(fmt::format("Attribute {} of {} has {} values, but needs {}.", field, name(t),
                            found.size(), info(t).rank));
  std::array<std::int64_t, 5> index{};
  for (std::size_t i = 0; i < found.size(); ++i) {
    index[i] = found[i];
    if (found[i] < data.origin[i] || found[i] >= data.origin[i] + data.shape[i])
      throw Error(fmt::format("Attribute {} of {} is {}, which is none of its cells.", field,
                              name(t), found));
  }
  return index;
}

// Files of before there were GPUs have none of this.
void read_moves(const Hdf5Object& dataset, const TensorData& data, Repetition& repetition) {
  if (has_attribute(dataset, "moved"))
    repetition.differing[static_cast<std::size_t>(data.id)] = read_cells(dataset, "moved", data);
  if (!has_attribute(dataset, "first_moved")) return;
  Repetition::Cell cell{data.id, read_index(dataset, "first_moved", data), 0, 0};
  read_attribute(dataset, "first_moved_value", cell.first);
  read_attribute(dataset, "first_moved_second_value", cell.second);
  repetition.first = cell;
}

Coverage read_coverage(const Hdf5Object& dataset, const TensorData& data) {
  Coverage coverage;
  coverage.never = read_cells(dataset, "never_written", data);
  coverage.repeatedly = read_cells(dataset, "repeatedly_written", data);
  const auto fault = [&](const char* field) {
    return CoverageFault{data.id, read_index(dataset, field, data), 0};
  };
  if (has_attribute(dataset, "first_never_written"))
    coverage.first_never = fault("first_never_written");
  if (has_attribute(dataset, "first_repeatedly_written")) {
    coverage.first_repeated = fault("first_repeatedly_written");
    std::int64_t times = 0;
    read_attribute(dataset, "first_repeatedly_written_times", times);
    coverage.first_repeated->writes = static_cast<int>(times);
  }
  return coverage;
}

}  // namespace

DumpFile::DumpFile(const std::string& path) {
  try {
    require_dump(path);
    read_header();
    read_tensor_headers();
  } catch (const Error& e) {
    throw Error(fmt::format("{} cannot be read as a dump. {}", path, e.what()));
  }
}

void DumpFile::require_dump(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    throw Error(fmt::format("It could not be opened: {}. Check the name.", std::strerror(errno)));
  if (!S_ISREG(status.st_mode))
    throw Error("It is not a regular file. Name a file that attn-diag dump wrote.");
  if (!is_hdf5_file(path))
    throw Error(fmt::format(
        "It is not an HDF5 file ({} bytes without the HDF5 signature), or its beginning is lost. "
        "Name a file that attn-diag dump wrote.",
        status.st_size));
  x_document = std::make_unique<Hdf5Document>(path);
  const Hdf5Object& root = x_document->root();
  if (!has_attribute(root, "schema"))
    throw Error(fmt::format(
        "It is an HDF5 file of another program: expected the root attribute schema with the value "
        "\"{}\", found none. Name a file that attn-diag dump wrote.",
        kSchema));
  std::string schema;
  read_attribute(root, "schema", schema);
  if (schema == kSchema) return;
  const std::string_view family =
      std::string_view(kSchema).substr(0, std::string_view(kSchema).find('/') + 1);
  if (schema.compare(0, family.size(), family) == 0)
    throw Error(
        fmt::format("It has schema {}, but this attn-diag reads {}. Use the attn-diag that "
                    "wrote it or a newer one, or write it again with this one.",
                    schema, kSchema));
  throw Error(
      fmt::format("Its schema is \"{}\", expected \"{}\". Name a file that attn-diag dump "
                  "wrote.",
                  schema, kSchema));
}

void DumpFile::read_header() {
  Capture& c = x_header;
  const Hdf5Object& root = x_document->root();
  std::int64_t isolated = 0;
  read_attribute(root, "isolated", isolated);
  c.isolated = isolated != 0;
  read_attribute(root, "notes", c.notes);
  std::int64_t runs = 1;
  if (has_attribute(root, "runs")) read_attribute(root, "runs", runs);
  if (runs < 1 || runs > kMostRuns)
    throw Error(fmt::format("Attribute runs is {}, but a dump is of 1 run or a few.", runs));
  c.repetition.runs = static_cast<int>(runs);
  // Where a file does not say so, what moved counts as a race.
  std::int64_t within = 0;
  if (has_attribute(root, "moved_within_rounding"))
    read_attribute(root, "moved_within_rounding", within);
  c.repetition.within_rounding = within != 0;

  const Hdf5Object& problem = group("/problem");
  visit_problem(c.problem, AttributeReader(problem, "/problem"));
  visit_geometry(c.geometry, AttributeReader(problem, "/problem"));
  c.region.origin = read_array<3>(problem, "region_origin");
  c.region.extent = read_array<3>(problem, "region_extent");
  check_problem(c.problem);
  check_geometry(c.geometry, c.problem);
  check_region(c.region, c.problem);

  const Hdf5Object& arithmetic = group("/arithmetic");
  visit_arithmetic(c.arithmetic, AttributeReader(arithmetic, "/arithmetic"));
  check_arithmetic(c.arithmetic);
  const Hdf5Object& provenance = group("/provenance");
  visit_provenance(c.provenance, AttributeReader(provenance, "/provenance"));
  read_sources(provenance, c.provenance.sources);
}

void DumpFile::read_tensor_headers() {
  Capture& c = x_header;
  for (const TensorInfo& t : kTensors) {
    const auto i = static_cast<std::size_t>(t.id);
    const Hdf5Object& stage = group(fmt::format("{}/{}", kStagesGroup, name(t.stage)));
    const std::string exempt = fmt::format("exempt_{}", t.name);
    if (has_attribute(stage, exempt.c_str())) read_attribute(stage, exempt.c_str(), c.exempt[i]);
    const std::string path = tensor_path(kStagesGroup, t.id);
    if (!has(path)) continue;
    TensorData data;
    data.id = t.id;
    data.shape = recorded_shape(t.id, c);
    data.origin = recorded_origin(t.id, c);
    const Hdf5Object& dataset = open(path, data.shape, data.dtype);
    c.coverage[i] = read_coverage(dataset, data);
    read_moves(dataset, data, c.repetition);
    c.tensors[i] = std::move(data);
  }
}

const Hdf5Object& DumpFile::group(const std::string& path) const {
  const Hdf5Object* found = x_document->find(path);
  if (found == nullptr || found->is_dataset)
    throw Error(fmt::format("Group {} is missing. Write the dump again.", path));
  return *found;
}

const Hdf5Object& DumpFile::open(const std::string& dataset_path,
                                 const std::vector<std::int64_t>& shape, DType& dtype) const {
  const Hdf5Object* dataset = x_document->find(dataset_path);
  if (dataset == nullptr || !dataset->is_dataset)
    throw Error(fmt::format("Dataset {} is missing. Write the dump again.", dataset_path));
  if (!dataset->refused.empty()) throw Error(dataset->refused);
  if (dataset->shape != shape)
    throw Error(fmt::format(
        "Dataset {} has shape {}, but its problem, tiles and region ask for {}. Write the dump "
        "again.",
        dataset_path, dataset->shape, shape));
  if (!dataset->native)
    throw Error(fmt::format(
        "Dataset {} has elements of type {}; expected a little-endian float of 16, 32 or 64 bits. "
        "Write the dump again.",
        dataset_path, dataset->type));
  dtype = *dataset->dtype;
  return *dataset;
}

void DumpFile::read_inputs(Capture& c) const {
  const std::array<SharedBytes*, 3> inputs{&c.q, &c.k, &c.v};
  const auto layouts = input_layouts(c.problem);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string path = fmt::format("/inputs/{}", layouts[i].name);
    const auto& shape = layouts[i].shape;
    DType dtype{};
    const Hdf5Object& dataset = open(path, {shape.begin(), shape.end()}, dtype);
    if (dtype != c.problem.dtype)
      throw Error(
          fmt::format("Dataset {} has type {}, but the problem's is {}. Write the dump "
                      "again.",
                      path, text(dtype), text(c.problem.dtype)));
    *inputs[i] = x_document->read(dataset);
  }
}

}  // namespace attn_diag
