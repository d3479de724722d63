// The sections of gpu_check. Each runs what it checks in child processes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/gpu_check/record.h"

namespace attn_diag::gpu_check {

// Where things are, and what was asked for.
struct Setup {
  std::string root;       // the folder of the bundle or build: bin, lib and tests are in it
  std::string program;    // this one
  std::string attn_diag;  // the command
  std::string cuda_tests;
  std::string layout_probe, product_probe;  // wmma_layout_probe, wmma_product_probe, for cuda
  std::string kernels;                      // folder of the kernel libraries
  std::string fixtures;                     // folder "fixtures"
  std::string pairs;                        // folder that `fixtures/zoo/run_all pairs` made
  std::string pytorch;                      // compare_with_pytorch.py
  std::string out;                          // folder to write to
  bool quick = false;
  std::function<void(int done, int all, const std::string& what)> progress;

  // Kernel libraries built for cuda: "fa1"; with a planted fault: "fa1@scale-missing". Sorted.
  std::vector<std::string> cuda_kernels(bool faults) const;
  // One line for a shell whose working directory is `root`.
  std::string shown(const std::vector<std::string>& words) const;
};

Section doctor_section(const Setup& setup);
// Three sections: every stage against the host within bounds; with and without taps; run again.
std::vector<Section> agreement_sections(const Setup& setup);

// Without name and title: the plan of the run gives them (main.cc).
Section tests_section(const Setup& setup);
Section faults_section(const Setup& setup);
Section fidelity_section(const Setup& setup);
Section wmma_section(const Setup& setup);
Section bench_section(const Setup& setup);

}  // namespace attn_diag::gpu_check
