// What can run on this machine, found out by trying, and why the rest cannot.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/gpu.h"
#include "attn_diag/harness/kernel.h"

namespace attn_diag {

struct Toolkit {
  std::string nvcc, version;  // empty: none
};

struct LibraryHealth {
  LibraryEntry library;
  std::string why_not;  // empty: it can run here
};

struct BackendHealth {
  std::string name;
  std::string ran;      // the kernel that was run, and agreed with the reference
  std::string why_not;  // empty: it works

  bool works() const { return why_not.empty(); }
};

// Something that cannot be done here, and what to do about it.
struct Lack {
  std::string what, why;
};

struct Health {
  std::string compiler, hdf5_built, hdf5_running;
  int cores = 0;
  Toolkit toolkit_built, toolkit_found;  // of this program; on this machine
  GpuState gpus;
  std::vector<std::string> searched;  // for kernel libraries
  std::vector<LibraryHealth> libraries;
  BackendHealth host, cuda;
  std::vector<Lack> lacks;
};

// Loads every kernel library, and runs a small case on each backend that can run at all.
Health examine();

// Why a library cannot run here, in complete sentences; empty if it can.
std::string why_not_here(const LibraryEntry& library, const GpuState& gpus);

// The first nvcc of the directories of a PATH, and of /usr/local/cuda/bin after them.
Toolkit find_toolkit(const std::string& path);

}  // namespace attn_diag
