// The device that kernels are shown: limits of compute capability 9.0 (CUDA C++ Programming Guide, table
// "Technical Specifications per Compute Capability").
#pragma once

#include <cstddef>

namespace attn_diag::host {

inline constexpr int kMultiprocessors = 132;
inline constexpr int kThreadsOfMultiprocessor = 2048;
inline constexpr int kBlocksOfMultiprocessor = 32;
inline constexpr int kThreadsOfBlock = 1024;
inline constexpr std::size_t kSharedOfMultiprocessor = 228 * 1024;
inline constexpr std::size_t kReservedSharedOfBlock = 1024;
inline constexpr std::size_t kSharedOfBlock = 48 * 1024;        // without asking
inline constexpr std::size_t kOptInSharedOfBlock = 227 * 1024;  // with cudaFuncSetAttribute
inline constexpr std::size_t kConstantMemory = 64 * 1024;
inline constexpr std::size_t kDeviceMemory = std::size_t{80} << 30;
inline constexpr int kRegistersAssumed = 32;  // of a thread; what a device would use is not known

}  // namespace attn_diag::host
