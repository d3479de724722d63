// Copying and filling.
#include <cstring>

#include "attn_diag_host/memory_api.h"
#include "harness/host/allocations.h"
#include "harness/host/check/notes.h"
#include "harness/host/last_error.h"
#include "harness/host/text.h"
#include "harness/host/values/recorder.h"

namespace {

using attn_diag::host::Allocations;
using attn_diag::host::concat;
using attn_diag::host::MemoryKind;
using attn_diag::host::note_host_wrote;
using attn_diag::host::refuse;

bool is_device(const void* pointer) {
  const auto allocation = Allocations::instance().find(pointer);
  return allocation && !allocation->freed && allocation->kind == MemoryKind::kDevice;
}

// Why memory of this kind cannot be one side of the copy. `host`: that side is to be host memory.
std::string side_problem(const char* side, const void* pointer, std::size_t bytes, bool host) {
  const std::string problem = Allocations::instance().problem_with(pointer, bytes);
  if (!problem.empty()) return concat("the ", side, " ", pointer, ": ", problem);
  if (host && is_device(pointer))
    return concat("the ", side, " ", pointer,
                  " is device memory, but the kind of the copy says host");
  return "";
}

std::string copy_problem(void* to, std::size_t to_bytes, const void* from, std::size_t from_bytes,
                         cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return concat("there is no kind ", static_cast<int>(kind), " of copies");
  const bool to_host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
  const bool from_host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
  const std::string problem = side_problem("destination", to, to_bytes, to_host);
  return problem.empty() ? side_problem("source", from, from_bytes, from_host) : problem;
}

cudaError_t copy(const char* call, void* to, const void* from, std::size_t bytes,
                 cudaMemcpyKind kind) {
  if (bytes == 0) return cudaSuccess;
  const std::string problem = copy_problem(to, bytes, from, bytes, kind);
  if (!problem.empty()) return refuse(cudaErrorInvalidValue, call, problem);
  std::memmove(to, from, bytes);
  attn_diag::host::note_copied(to, from, bytes);
  note_host_wrote(to, bytes);
  return cudaSuccess;
}

// Bytes from the first of the first row to the last of the last row.
std::size_t extent(std::size_t pitch, std::size_t width, std::size_t height) {
  return (height - 1) * pitch + width;
}

cudaError_t copy_rows(const char* call, void* to, std::size_t to_pitch, const void* from,
                      std::size_t from_pitch, std::size_t width, std::size_t height,
                      cudaMemcpyKind kind) {
  if (width == 0 || height == 0) return cudaSuccess;
  if (width > to_pitch || width > from_pitch)
    return refuse(
        cudaErrorInvalidPitchValue, call,
        concat("rows of ", width, " bytes in pitches of ", to_pitch, " and ", from_pitch));
  const std::string problem = copy_problem(to, extent(to_pitch, width, height), from,
                                           extent(from_pitch, width, height), kind);
  if (!problem.empty()) return refuse(cudaErrorInvalidValue, call, problem);
  for (std::size_t row = 0; row < height; ++row) {
    std::memmove(static_cast<char*>(to) + row * to_pitch,
                 static_cast<const char*>(from) + row * from_pitch, width);
    attn_diag::host::note_copied(static_cast<char*>(to) + row * to_pitch,
                                 static_cast<const char*>(from) + row * from_pitch, width);
    note_host_wrote(static_cast<char*>(to) + row * to_pitch, width);
  }
  return cudaSuccess;
}

cudaError_t fill(const char* call, void* pointer, std::size_t pitch, int value, std::size_t width,
                 std::size_t height) {
  if (width == 0 || height == 0) return cudaSuccess;
  if (width > pitch)
    return refuse(cudaErrorInvalidValue, call,
                  concat("rows of ", width, " bytes in a pitch of ", pitch));
  const std::string problem =
      side_problem("destination", pointer, extent(pitch, width, height), false);
  if (!problem.empty()) return refuse(cudaErrorInvalidValue, call, problem);
  for (std::size_t row = 0; row < height; ++row) {
    std::memset(static_cast<char*>(pointer) + row * pitch, value, width);
    attn_diag::host::note_cleared(static_cast<char*>(pointer) + row * pitch, width);
    note_host_wrote(static_cast<char*>(pointer) + row * pitch, width);
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return copy("cudaMemcpy", to, from, bytes, kind);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return copy("cudaMemcpyAsync", to, from, bytes, kind);
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  return copy_rows("cudaMemcpy2D", to, to_pitch, from, from_pitch, width, height, kind);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t) {
  return copy_rows("cudaMemcpy2DAsync", to, to_pitch, from, from_pitch, width, height, kind);
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           std::size_t bytes) {
  if (to_device != 0 || from_device != 0)
    return refuse(cudaErrorInvalidDevice, "cudaMemcpyPeer", "there is device 0 only");
  return copy("cudaMemcpyPeer", to, from, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, cudaStream_t) {
  return cudaMemcpyPeer(to, to_device, from, from_device, bytes);
}

cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes) {
  return fill("cudaMemset", pointer, bytes, value, bytes, 1);
}

cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t) {
  return fill("cudaMemsetAsync", pointer, bytes, value, bytes, 1);
}

cudaError_t cudaMemset2D(void* pointer, std::size_t pitch, int value, std::size_t width,
                         std::size_t height) {
  return fill("cudaMemset2D", pointer, pitch, value, width, height);
}

cudaError_t cudaMemset2DAsync(void* pointer, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t) {
  return fill("cudaMemset2DAsync", pointer, pitch, value, width, height);
}

cudaError_t attn_diag::host::copy_symbol(const char* call, void* to, const void* from,
                                         std::size_t size, std::size_t bytes, std::size_t offset) {
  if (offset > size || bytes > size - offset)
    return refuse(cudaErrorInvalidValue, call,
                  concat(bytes, " bytes from byte ", offset, " on leave the variable's ", size));
  if (bytes > 0) std::memmove(to, from, bytes);
  attn_diag::host::note_copied(to, from, bytes);
  return cudaSuccess;
}
