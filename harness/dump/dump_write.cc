#include <fmt/format.h>
#include <hdf5_hl.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <type_traits>

#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/reference/reference.h"
#include "harness/base/pending_file.h"
#include "harness/capture/capture_fields.h"
#include "harness/capture/consistency.h"
#include "harness/capture/oracle.h"
#include "harness/capture/reference_rows.h"
#include "harness/dump/dump_layout.h"

namespace attn_diag {
namespace {

// Writes a visited field as an attribute: numbers as numbers, the rest as its spelling.
class AttributeWriter {
 public:
  explicit AttributeWriter(hid_t object) : x_object(object) {}
  template <class T>
  void operator()(const char* field, const T& value) const {
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::uint64_t>)
      write_attribute(x_object, field, value);
    else if constexpr (std::is_floating_point_v<T>)
      write_attribute(x_object, field, static_cast<double>(value));
    else if constexpr (std::is_integral_v<T>)
      write_attribute(x_object, field, static_cast<std::int64_t>(value));
    else
      write_attribute(x_object, field, text(value));
  }

 private:
  hid_t x_object;
};

std::int64_t product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Enlarges a chunk from its last axis on, by whole tiles, until it is worth compressing.
std::vector<hsize_t> grown_chunk(std::vector<std::int64_t> tile,
                                 const std::vector<std::int64_t>& shape, std::size_t element) {
  constexpr std::int64_t kWorthwhile = 64 * 1024;
  for (std::size_t i = 0; i < tile.size(); ++i) tile[i] = std::min(tile[i], shape[i]);
  for (std::size_t i = tile.size(); i-- > 0;)
    while (tile[i] < shape[i] && product(tile) * static_cast<std::int64_t>(element) < kWorthwhile)
      tile[i] = std::min(2 * tile[i], shape[i]);
  return {tile.begin(), tile.end()};
}

class DumpWriter {
 public:
  // path: of a file that does not exist.
  DumpWriter(const std::string& path, const Capture& capture, const DumpOptions& options)
      : x_capture(capture), x_options(options) {
    const Hdf5Id access(check(H5Pcreate(H5P_FILE_ACCESS), "create a property list"), H5Pclose);
    // Large datasets begin at a page, so that they can be read straight from the file.
    check(H5Pset_alignment(access, 64 * 1024, 4096), "set the alignment");
    x_file =
        Hdf5Id(check(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access), "create the file"),
               H5Fclose);
  }

  void write() {
    write_header();
    write_inputs();
    write_stages();
    write_uncertainties();
    if (x_options.with_reference) write_reference();
    if (!x_options.lines.empty())
      write_attribute(create_group(x_file, std::string(kLinesGroup)), kLinesAttribute,
                      x_options.lines);
    // What makes the file a dump comes last.
    write_attribute(x_file, "schema", std::string(kSchema));
    x_scales.clear();
    check(H5Fflush(x_file, H5F_SCOPE_GLOBAL), "write the file");
    x_file.close("close the file");
  }

 private:
  void write_header() {
    write_attribute(x_file, "created", x_capture.provenance.created);
    write_attribute(x_file, "generator_version", x_capture.provenance.generator_version);
    write_attribute(x_file, "isolated", std::int64_t{x_capture.isolated});
    write_attribute(x_file, "notes", x_capture.notes);
    write_attribute(x_file, "runs", std::int64_t{x_capture.repetition.runs});
    if (x_capture.repetition.moved())
      write_attribute(x_file, "moved_within_rounding",
                      std::int64_t{x_capture.repetition.within_rounding});
    const Hdf5Id problem = create_group(x_file, "/problem");
    visit_problem(x_capture.problem, AttributeWriter(problem));
    visit_geometry(x_capture.geometry, AttributeWriter(problem));
    const auto& [origin, extent] = x_capture.region;
    write_attribute(problem, "region_origin",
                    std::vector<std::int64_t>(origin.begin(), origin.end()));
    write_attribute(problem, "region_extent",
                    std::vector<std::int64_t>(extent.begin(), extent.end()));
    const Hdf5Id arithmetic = create_group(x_file, "/arithmetic");
    visit_arithmetic(x_capture.arithmetic, AttributeWriter(arithmetic));
    const Hdf5Id provenance = create_group(x_file, "/provenance");
    visit_provenance(x_capture.provenance, AttributeWriter(provenance));
    write_sources(provenance);
  }

  void write_sources(hid_t provenance) {
    std::vector<std::string> paths, built, disk;
    for (const SourceState& s : x_capture.provenance.sources) {
      paths.push_back(s.path);
      built.push_back(fmt::format("{:016x}", s.built_hash));
      disk.push_back(s.found ? fmt::format("{:016x}", s.disk_hash) : "");
    }
    write_attribute(provenance, "source_paths", paths);
    write_attribute(provenance, "source_built_hashes", built);
    write_attribute(provenance, "source_disk_hashes", disk);
    write_attribute(provenance, "stale", std::int64_t{x_capture.provenance.stale()});
  }

  void write_inputs() {
    const Problem& p = x_capture.problem;
    const Hdf5Id group = create_group(x_file, "/inputs");
    const std::array<const SharedBytes*, 3> data{&x_capture.q, &x_capture.k, &x_capture.v};
    const auto layouts = input_layouts(p);
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      const InputLayout& layout = layouts[i];
      const std::vector<std::int64_t> shape(layout.shape.begin(), layout.shape.end());
      std::vector<std::int64_t> tile(4, 1);
      tile[p.layout == Layout::kBHSD ? 2 : 1] =
          i == 0 ? x_capture.geometry.tile.block_m : x_capture.geometry.tile.block_n;
      tile[3] = shape[3];
      const Hdf5Id dataset = create_dataset(group, layout.name, p.dtype, shape, tile);
      for (std::size_t axis = 0; axis < 4; ++axis)
        attach_scale(dataset, axis, fmt::format("/axes/inputs/{}", layout.axes[axis]),
                     layout.axes[axis], 0, shape[axis]);
      write_whole(dataset, p.dtype, data[i]->data(), layout.name);
    }
  }

  void write_stages() {
    const Hdf5Id stages = create_group(x_file, std::string(kStagesGroup));
    for (int s = 0; s < kNumStages; ++s) {
      const auto stage = static_cast<Stage>(s);
      const Hdf5Id group = create_group(stages, std::string(name(stage)));
      for (const TensorInfo& t : kTensors) {
        if (t.stage != stage) continue;
        const auto i = static_cast<std::size_t>(t.id);
        if (!x_capture.exempt[i].empty())
          write_attribute(group, fmt::format("exempt_{}", t.name).c_str(), x_capture.exempt[i]);
        if (!x_capture.tensors[i]) continue;
        const TensorData& data = *x_capture.tensors[i];
        const Hdf5Id dataset = create_tensor(group, t.id, data.dtype);
        write_coverage(dataset, x_capture.coverage[i], t.rank);
        write_moves(dataset, t);
        write_whole(dataset, data.dtype, data.bytes.data(), std::string(t.name));
      }
    }
  }

  // Uncertainties of reconstructed tensors; no group where there are none.
  void write_uncertainties() {
    Hdf5Id root;
    for (const TensorInfo& t : kTensors) {
      if (!x_capture.has(t.id) || x_capture[t.id].uncertainty.empty()) continue;
      if (root < 0) root = create_group(x_file, std::string(kUncertaintyGroup));
      const std::string stage(name(t.stage));
      const Hdf5Id group =
          link_exists(root, stage) ? open_group(root, stage) : create_group(root, stage);
      const Hdf5Id dataset = create_tensor(group, t.id, DType::kFp32);
      write_whole(dataset, DType::kFp32, x_capture[t.id].uncertainty.data(), std::string(t.name));
    }
  }

  void write_coverage(hid_t dataset, const Coverage& coverage, int rank) {
    const auto index = [rank](const CoverageFault& f) {
      return std::vector<std::int64_t>(f.index.begin(), f.index.begin() + rank);
    };
    write_attribute(dataset, "never_written", coverage.never);
    write_attribute(dataset, "repeatedly_written", coverage.repeatedly);
    if (coverage.first_never)
      write_attribute(dataset, "first_never_written", index(*coverage.first_never));
    if (coverage.first_repeated) {
      write_attribute(dataset, "first_repeatedly_written", index(*coverage.first_repeated));
      write_attribute(dataset, "first_repeatedly_written_times",
                      std::int64_t{coverage.first_repeated->writes});
    }
  }

  void write_moves(hid_t dataset, const TensorInfo& t) {
    const Repetition& repetition = x_capture.repetition;
    write_attribute(dataset, "moved", repetition.differing[static_cast<std::size_t>(t.id)]);
    if (!repetition.first || repetition.first->tensor != t.id) return;
    const auto& index = repetition.first->index;
    write_attribute(dataset, "first_moved",
                    std::vector<std::int64_t>(index.begin(), index.begin() + t.rank));
    write_attribute(dataset, "first_moved_value", repetition.first->first);
    write_attribute(dataset, "first_moved_second_value", repetition.first->second);
  }

  // Reference and bound of every recorded tensor, block by block as they are computed.
  void write_reference() {
    struct Target {
      Tensor id;
      Hdf5Id value, bound;
    };
    std::vector<Target> targets;
    for (const std::string_view tree : {kReferenceGroup, kBoundGroup}) {
      const Hdf5Id root = create_group(x_file, std::string(tree));
      for (int s = 0; s < kNumStages; ++s)
        const Hdf5Id group =
            create_group(root, std::string(kStageNames[static_cast<std::size_t>(s)]));
    }
    for (const TensorInfo& t : kTensors)
      if (x_capture.has(t.id))
        targets.push_back(
            {t.id, create_in_tree(kReferenceGroup, t.id), create_in_tree(kBoundGroup, t.id)});

    std::mutex mutex;  // the reference calls from several threads, within this session
    const auto visit = [&](const reference::RowBlock& block) {
      const std::lock_guard lock(mutex);
      const Hdf5Quiet quiet;
      for (const Target& target : targets) {
        const auto t = static_cast<std::size_t>(target.id);
        write_rows(target.value, target.id, block, block.value[t]);
        write_rows(target.bound, target.id, block, block.bound[t]);
      }
    };
    for_each_row_block(x_capture, reference_options(x_capture, x_options.threads, true), visit);
  }

  Hdf5Id create_in_tree(std::string_view tree, Tensor t) {
    const Hdf5Id group = open_group(x_file, fmt::format("{}/{}", tree, name(stage_of(t))));
    return create_tensor(group, t, DType::kFp64);
  }

  void write_rows(hid_t dataset, Tensor t, const reference::RowBlock& block, const double* values) {
    if (values == nullptr) return;
    const std::vector<std::int64_t> shape = recorded_shape(t, x_capture);
    const auto& origin = x_capture.region.origin;
    std::vector<hsize_t> start(shape.size(), 0), count(shape.begin(), shape.end());
    start[0] = static_cast<hsize_t>(block.batch - origin[0]);
    start[1] = static_cast<hsize_t>(block.head - origin[1]);
    start[2] = static_cast<hsize_t>(block.query_begin - origin[2]);
    count[0] = count[1] = 1;
    count[2] = static_cast<hsize_t>(block.rows);
    const Hdf5Id file_space(check(H5Dget_space(dataset), "select rows"), H5Sclose);
    check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start.data(), nullptr, count.data(),
                              nullptr),
          "select rows");
    const Hdf5Id memory_space(
        check(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
              "select rows"),
        H5Sclose);
    check(H5Dwrite(dataset, file_type(DType::kFp64), memory_space, file_space, H5P_DEFAULT, values),
          fmt::format("write the reference of {}", name(t)));
  }

  Hdf5Id create_tensor(hid_t group, Tensor t, DType dtype) {
    const std::vector<std::int64_t> shape = recorded_shape(t, x_capture);
    const std::vector<std::int64_t> origin = recorded_origin(t, x_capture);
    const TensorInfo& tensor = info(t);
    std::vector<std::int64_t> tile(shape.size(), 1);
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (tensor.axes[i] == Axis::kQuery)
        tile[i] = x_capture.geometry.tile.block_m;
      else if (tensor.axes[i] == Axis::kKey)
        tile[i] = x_capture.geometry.tile.block_n;
      else if (tensor.axes[i] == Axis::kDim)
        tile[i] = shape[i];
    Hdf5Id dataset = create_dataset(group, std::string(tensor.name), dtype, shape, tile);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::string axis(name(tensor.axes[i]));
      attach_scale(dataset, i, "/axes/" + axis, axis, origin[i], shape[i]);
    }
    return dataset;
  }

  Hdf5Id create_dataset(hid_t group, const std::string& dataset_name, DType dtype,
                        const std::vector<std::int64_t>& shape,
                        const std::vector<std::int64_t>& tile) {
    const std::vector<hsize_t> extent(shape.begin(), shape.end());
    const Hdf5Id space(
        check(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
              "create a dataspace"),
        H5Sclose);
    const Hdf5Id creation(check(H5Pcreate(H5P_DATASET_CREATE), "create a property list"), H5Pclose);
    const Hdf5Id access(check(H5Pcreate(H5P_DATASET_ACCESS), "create a property list"), H5Pclose);
    // Every cell is written; filling first would write everything twice.
    check(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER), "set the fill time");
    if (x_options.deflate > 0 && !extent.empty()) {
      const std::vector<hsize_t> chunk = grown_chunk(tile, shape, size_of(dtype));
      check(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()),
            "set the chunk shape");
      check(H5Pset_shuffle(creation), "set the shuffle filter");
      check(H5Pset_deflate(creation, static_cast<unsigned>(x_options.deflate)),
            "set the compression");
      check(H5Pset_chunk_cache(access, 1009, 32 * 1024 * 1024, 1.0), "set the chunk cache");
    }
    return {check(H5Dcreate2(group, dataset_name.c_str(), file_type(dtype), space, H5P_DEFAULT,
                             creation, access),
                  "create dataset " + dataset_name),
            H5Dclose};
  }

  void write_whole(hid_t dataset, DType dtype, const void* data, const std::string& what) {
    check(H5Dwrite(dataset, file_type(dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, data),
          "write " + what);
  }

  // Labels an axis and attaches its scale: the absolute coordinates first, first + 1, ... The same
  // path is the same scale.
  void attach_scale(hid_t dataset, std::size_t axis, const std::string& path,
                    const std::string& label, std::int64_t first, std::int64_t extent) {
    auto found = x_scales.find(path);
    if (found == x_scales.end()) {
      const hsize_t n = static_cast<hsize_t>(extent);
      const Hdf5Id links(check(H5Pcreate(H5P_LINK_CREATE), "create a property list"), H5Pclose);
      check(H5Pset_create_intermediate_group(links, 1), "create a property list");
      const Hdf5Id space(check(H5Screate_simple(1, &n, nullptr), "create a scale"), H5Sclose);
      Hdf5Id scale(check(H5Dcreate2(x_file, path.c_str(), H5T_STD_I64LE, space, links, H5P_DEFAULT,
                                    H5P_DEFAULT),
                         "create scale " + path),
                   H5Dclose);
      std::vector<std::int64_t> coordinates(static_cast<std::size_t>(extent));
      std::iota(coordinates.begin(), coordinates.end(), first);
      check(H5Dwrite(scale, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, coordinates.data()),
            "write scale " + path);
      check(H5DSset_scale(scale, label.c_str()), "make scale " + path);
      found = x_scales.emplace(path, std::move(scale)).first;
    }
    check(H5DSattach_scale(dataset, found->second, static_cast<unsigned>(axis)),
          "attach scale " + path);
    check(H5DSset_label(dataset, static_cast<unsigned>(axis), label.c_str()), "label an axis");
  }

  const Capture& x_capture;
  const DumpOptions& x_options;
  Hdf5Id x_file;
  std::map<std::string, Hdf5Id> x_scales;
};

double data_bytes(const Capture& capture, const DumpOptions& options) {
  double bytes = static_cast<double>(capture.q.size() + capture.k.size() + capture.v.size());
  for (const std::optional<TensorData>& t : capture.tensors) {
    if (!t) continue;
    bytes += static_cast<double>(t->bytes.size());
    if (options.with_reference) bytes += 16.0 * static_cast<double>(t->size());
  }
  return bytes;
}

// Uncompressed data that cannot fit is refused before anything is written.
void require_space(const std::string& path, const Capture& capture, const DumpOptions& options) {
  std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (directory.empty()) directory = ".";
  struct statvfs status;
  if (options.deflate > 0 || statvfs(directory.c_str(), &status) != 0) return;
  const double available =
      static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
  const double needed = data_bytes(capture, options);
  if (needed > available)
    throw Error(fmt::format(
        "{} needs {:.1f} MiB, but {} has {:.1f} MiB free. Free some space, write elsewhere, or "
        "dump less: an earlier --stage, fewer --batch or --heads, a shorter --seqlen.",
        path, needed / 0x1p20, directory.string(), available / 0x1p20));
}

void check_inputs(const Capture& capture) {
  const std::array<std::size_t, 3> sizes{capture.q.size(), capture.k.size(), capture.v.size()};
  const auto layouts = input_layouts(capture.problem);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto& shape = layouts[i].shape;
    const auto expected = static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]) *
                          size_of(capture.problem.dtype);
    if (sizes[i] != expected)
      throw Error(
          fmt::format("Input {} needs {} bytes, but has {}.", layouts[i].name, expected, sizes[i]));
  }
}

}  // namespace

void write_dump(const std::string& path, const Capture& capture, const DumpOptions& options) {
  if (options.deflate < 0 || options.deflate > 9)
    throw Error(fmt::format("The compression level must be 0 to 9, but is {}.", options.deflate));
  check_inputs(capture);
  for (const std::optional<TensorData>& t : capture.tensors)
    if (t) check_tensor(capture, *t);

  PendingFile pending(path, options.force);
  require_space(path, capture, options);
  try {
    const Hdf5Session session;
    DumpWriter(pending.temporary_path(), capture, options).write();
  } catch (const Error& e) {
    throw Error(fmt::format("{} was not written. {} Nothing is left of it.", path, e.what()));
  }
  pending.commit();
}

}  // namespace attn_diag
