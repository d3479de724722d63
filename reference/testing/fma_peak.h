// The fp64 fused multiply-add peak of this machine's cores, as a yardstick for benchmarks.
#pragma once

namespace attn_diag::reference::testing {

// Seconds of processor time this process has used, all threads together. Ratios of it hold on a
// machine that is busy with other things, too.
double processor_seconds();

// Floating-point operations (two per multiply-add) per second and core, of `threads` threads that do
// nothing but independent vector multiply-adds in registers, for some tens of milliseconds.
double measure_fma_peak(int threads);

}  // namespace attn_diag::reference::testing
