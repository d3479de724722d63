// Parts of build_library().
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/toolchain/build/build.h"

namespace attn_diag::build {

void build_for_host(const BuildRequest& request, const Settings& settings, BuildRecord& record);
void build_for_cuda(const BuildRequest& request, const Settings& settings, BuildRecord& record);

// What nvcc says of these files, compiled for the request's architecture alone and not kept.
std::vector<Step> check_with_nvcc(const BuildRequest& request, const Settings& settings,
                                  const std::vector<std::filesystem::path>& files);

// Bytes of __shared__ arrays that are not extern, in one kernel.
std::size_t static_shared_limit(const std::string& arch);

// The files to compile: a source that the adapter includes is part of it.
std::vector<std::filesystem::path> units_of(const BuildRequest& request);

// Where headers are looked for: in the folders that were named, then beside the sources, which an adapter may lie elsewhere
// than.
std::vector<std::string> include_folders(const BuildRequest& request);

// "90" of "sm_90a".
std::string arch_number(const std::string& arch);
// "GNU 12.2.0": its own first line where it says no more.
std::string compiler_version(const std::string& compiler);

}  // namespace attn_diag::build
