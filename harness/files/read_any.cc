// Which format a file is in.
#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "attn_diag/harness/error.h"
#include "harness/files/array.h"
#include "harness/hdf5_handle.h"

namespace attn_diag::files {
namespace {

namespace fs = std::filesystem;

bool is_hdf5(const std::string& path) {
  const Hdf5Session session;
  return H5Fis_hdf5(path.c_str()) > 0;
}

void read_folder(const std::string& path, Contents& to) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".npy") files.push_back(entry.path().string());
  if (files.empty())
    throw Error(fmt::format(
        "{} is a folder without .npy files. Name a folder that has q.npy, k.npy, v.npy and "
        "o.npy, or a file.",
        path));
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) read_any(file, to);
}

}  // namespace

void read_any(const std::string& path, Contents& to) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return read_folder(path, to);
  const std::uint64_t size = file_size(path);
  if (is_hdf5(path)) return read_hdf5(path, to);
  const ReadBytes read = bytes_of_file(path);
  const std::vector<std::byte> bytes = read(0, std::min<std::uint64_t>(size, 16));
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (start.starts_with("\x93NUMPY") || path.ends_with(".npy"))
    return read_npy(path, fs::path(path).stem().string(), read, size, to);
  if (start.starts_with("PK") || path.ends_with(".npz")) return read_npz(path, to);
  if ((start.size() > 8 && start[8] == '{') || path.ends_with(".safetensors"))
    return read_safetensors(path, to);
  if (start.starts_with("\x80") || path.ends_with(".pt") || path.ends_with(".pkl"))
    throw Error(
        fmt::format("{} is a Python pickle, which can be read by Python alone. Save the arrays "
                    "with numpy.savez or safetensors.",
                    path));
  throw Error(
      fmt::format("{} is of no format that can be read: HDF5, .npy, .npz and safetensors are. If "
                  "it was one of these, its beginning is lost.",
                  path));
}

}  // namespace attn_diag::files
