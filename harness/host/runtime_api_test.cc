#include <cuda_runtime.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

__constant__ float g_scales[4] = {1, 2, 3, 4};

__global__ void empty_kernel(float*) {}

// What the failed call says; clears the error.
std::string words(cudaError_t error) {
  CHECK(cudaPeekAtLastError() == error);
  return cudaGetErrorString(cudaGetLastError());
}

}  // namespace

TEST_CASE("device memory is poisoned, aligned and copied") {
  float* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 100) == cudaSuccess);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 256 == 0);
  CHECK(std::isnan(memory[24]));
  const float in[2] = {1.0f, 2.0f};
  float out[2] = {};
  CHECK(cudaMemcpy(memory, in, sizeof in, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpyAsync(out, memory, sizeof out, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK((out[0] == 1.0f && out[1] == 2.0f));
  CHECK(cudaMemset(memory, 0, 100) == cudaSuccess);
  CHECK(memory[24] == 0.0f);
  CHECK(cudaFree(memory) == cudaSuccess);
  CHECK(cudaMalloc(&memory, ~std::size_t{0} / 2) == cudaErrorMemoryAllocation);
  CHECK(contains(cudaGetErrorString(cudaGetLastError()), "no memory for"));
}

TEST_CASE("memory that is allocated in a scope holds the bytes that it asks for") {
  LaunchOptions options;
  options.allocated_fill = 0x77;
  const LaunchScope scope(options);
  unsigned char* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 100) == cudaSuccess);
  for (const int at : {-1, 0, 99, 100}) CHECK(memory[at] == 0x77);
  CHECK(cudaFree(memory) == cudaSuccess);
}

TEST_CASE("what runs over the end of an allocation, or begins before it, does no harm") {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{100000}}) {
    void *memory = nullptr, *other = nullptr;
    REQUIRE(cudaMalloc(&memory, bytes) == cudaSuccess);
    REQUIRE(cudaMalloc(&other, bytes) == cudaSuccess);
    constexpr std::ptrdiff_t kZone = 64 << 10;
    auto* const begin = static_cast<unsigned char*>(memory);
    for (const std::ptrdiff_t at : {-kZone, std::ptrdiff_t{-1}, static_cast<std::ptrdiff_t>(bytes),
                                    static_cast<std::ptrdiff_t>(bytes) + kZone - 1}) {
      CHECK(begin[at] == 0xFF);
      begin[at] = 0;
    }
    for (std::size_t i = 0; i < bytes; i += 7)
      REQUIRE(static_cast<unsigned char*>(other)[i] == 0xFF);
    CHECK(cudaFree(memory) == cudaSuccess);
    CHECK(cudaFree(other) == cudaSuccess);
  }
}

TEST_CASE("memory is freed once, from its start, by the call of its kind") {
  float* device = nullptr;
  REQUIRE(cudaMalloc(&device, 1024) == cudaSuccess);
  cudaError_t error = cudaFree(device + 4);
  CHECK(error == cudaErrorInvalidValue);
  CHECK(contains(words(error), "lies 16 bytes into 1024 bytes of device memory"));
  error = cudaFreeHost(device);
  CHECK(error == cudaErrorInvalidValue);
  CHECK(contains(words(error), "end it with cudaFree"));
  CHECK(cudaFree(device) == cudaSuccess);
  error = cudaFree(device);
  CHECK(error == cudaErrorInvalidValue);
  CHECK(contains(words(error), "invalid argument: cudaFree: "));
  CHECK(contains(words(cudaFree(device)), "was freed before (1024 bytes of device memory)"));
  int own = 0;
  error = cudaFree(&own);
  CHECK(error == cudaErrorInvalidValue);
  CHECK(contains(words(error), "was not allocated by the CUDA runtime"));
  CHECK(cudaFree(nullptr) == cudaSuccess);
  CHECK(cudaFreeHost(nullptr) == cudaSuccess);
}

TEST_CASE("the addresses of freed memory are nobody else's while they are remembered") {
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, 40000) == cudaSuccess);
  REQUIRE(cudaFree(device) == cudaSuccess);
  void* const own = std::malloc(40000);
  CHECK(own != device);
  CHECK(cudaMemcpy(own, own, 8, cudaMemcpyHostToHost) == cudaSuccess);
  std::free(own);
}

TEST_CASE("page-locked, managed, pitched and stream-ordered memory is allocated and freed") {
  float *host = nullptr, *managed = nullptr, *ordered = nullptr, *pitched = nullptr;
  REQUIRE(cudaMallocHost(&host, 64) == cudaSuccess);
  REQUIRE(cudaMallocManaged(&managed, 64) == cudaSuccess);
  REQUIRE(cudaMallocAsync(&ordered, 64, cudaStreamPerThread) == cudaSuccess);
  std::size_t pitch = 0;
  REQUIRE(cudaMallocPitch(&pitched, &pitch, 520, 3) == cudaSuccess);
  CHECK(pitch == 1024);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, host + 1) == cudaSuccess);
  CHECK((attributes.type == cudaMemoryTypeHost && attributes.devicePointer == host + 1));
  CHECK(cudaPointerGetAttributes(&attributes, managed) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeManaged);
  CHECK(cudaPointerGetAttributes(&attributes, ordered) == cudaSuccess);
  CHECK((attributes.type == cudaMemoryTypeDevice && attributes.hostPointer == nullptr));
  CHECK(cudaPointerGetAttributes(&attributes, &attributes) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK(cudaFreeHost(host) == cudaSuccess);
  CHECK(cudaFree(managed) == cudaSuccess);
  CHECK(cudaFreeAsync(ordered, nullptr) == cudaSuccess);
  CHECK(cudaPointerGetAttributes(&attributes, ordered) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK(cudaFree(pitched) == cudaSuccess);
}

TEST_CASE("host memory is registered once, and then has a device pointer") {
  std::vector<float> memory(16);
  void* device = nullptr;
  CHECK(cudaHostGetDevicePointer(&device, memory.data(), 0) == cudaErrorInvalidValue);
  CHECK(cudaHostRegister(memory.data(), 64, cudaHostRegisterMapped) == cudaSuccess);
  CHECK(cudaHostRegister(memory.data(), 64, 0) == cudaErrorHostMemoryAlreadyRegistered);
  CHECK(cudaHostGetDevicePointer(&device, memory.data(), 0) == cudaSuccess);
  CHECK(device == memory.data());
  CHECK(cudaHostUnregister(memory.data()) == cudaSuccess);
  CHECK(cudaHostUnregister(memory.data()) == cudaErrorHostMemoryNotRegistered);
  cudaGetLastError();
}

TEST_CASE("free memory shrinks by what is allocated") {
  std::size_t before = 0, after = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&before, &total) == cudaSuccess);
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 4096) == cudaSuccess);
  REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
  CHECK(before - after == 4096);
  cudaFree(memory);
  REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
  CHECK(before == after);
}

TEST_CASE("copies and fills that leave an allocation, or contradict their kind, are refused") {
  float *device = nullptr, host[64] = {};
  REQUIRE(cudaMalloc(&device, 128) == cudaSuccess);
  const auto refused = [](cudaError_t error, const char* why) {
    CHECK(error == cudaErrorInvalidValue);
    const std::string said = words(error);
    CAPTURE(said, why);
    CHECK(contains(said, why));
  };
  refused(cudaMemcpy(device, host, 132, cudaMemcpyHostToDevice),
          "132 bytes from byte 0 on leave its 128 bytes of device memory");
  refused(cudaMemcpy(host, device + 30, 12, cudaMemcpyDeviceToHost), "from byte 120 on");
  refused(cudaMemcpy(host, device, 8, cudaMemcpyHostToDevice), "the kind of the copy says host");
  refused(cudaMemcpy(nullptr, host, 8, cudaMemcpyHostToDevice), "it is null");
  refused(cudaMemset(device, 0, 129), "leave its 128 bytes");
  refused(cudaMemset2D(device, 64, 0, 8, 3), "leave its 128 bytes");
  CHECK(cudaMemcpy2D(host, 16, device, 8, 12, 2, cudaMemcpyDefault) == cudaErrorInvalidPitchValue);
  cudaFree(device);
  refused(cudaMemcpy(host, device, 8, cudaMemcpyDeviceToHost), "that were freed");
  refused(cudaMemcpy(host, host, 8, static_cast<cudaMemcpyKind>(7)), "no kind 7");
}

TEST_CASE("rows are copied and filled by their pitches") {
  unsigned char from[3 * 8], to[3 * 5];
  for (int i = 0; i < 24; ++i) from[i] = static_cast<unsigned char>(i);
  std::memset(to, 0xEE, sizeof to);
  REQUIRE(cudaMemcpy2D(to, 5, from, 8, 4, 3, cudaMemcpyHostToHost) == cudaSuccess);
  for (int row = 0; row < 3; ++row)
    for (int i = 0; i < 5; ++i) CHECK(to[row * 5 + i] == (i < 4 ? row * 8 + i : 0xEE));
  REQUIRE(cudaMemset2DAsync(to, 5, 7, 2, 3) == cudaSuccess);
  for (int row = 0; row < 3; ++row)
    for (int i = 0; i < 5; ++i) CHECK(to[row * 5 + i] == (i < 2 ? 7 : i < 4 ? row * 8 + i : 0xEE));
}

TEST_CASE("variables are copied to, from and into their bounds") {
  const float two[2] = {7, 8};
  float all[4] = {};
  REQUIRE(cudaMemcpyToSymbol(g_scales, two, sizeof two, 4) == cudaSuccess);
  REQUIRE(cudaMemcpyFromSymbol(all, g_scales, sizeof all) == cudaSuccess);
  CHECK((all[0] == 1 && all[1] == 7 && all[2] == 8 && all[3] == 4));
  CHECK(cudaMemcpyToSymbolAsync(g_scales, two, sizeof two, 12) == cudaErrorInvalidValue);
  CHECK(contains(words(cudaErrorInvalidValue), "8 bytes from byte 12 on leave the variable's 16"));
  float* at = nullptr;
  std::size_t bytes = 0;
  REQUIRE(cudaGetSymbolAddress(&at, g_scales) == cudaSuccess);
  REQUIRE(cudaGetSymbolSize(&bytes, g_scales) == cudaSuccess);
  CHECK((at == g_scales && bytes == 16));
}

TEST_CASE("streams and events live from their creation to their destruction") {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -100) == cudaSuccess);
  int priority = 0;
  unsigned flags = 0;
  CHECK(cudaStreamGetPriority(stream, &priority) == cudaSuccess);
  CHECK(cudaStreamGetFlags(stream, &flags) == cudaSuccess);
  CHECK((priority == -5 && flags == cudaStreamNonBlocking));
  cudaEvent_t start = nullptr, end = nullptr, untimed = nullptr;
  REQUIRE(cudaEventCreate(&start) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end, cudaEventBlockingSync) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming) == cudaSuccess);
  float milliseconds = -1;
  CHECK(cudaEventRecord(start, stream) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorInvalidResourceHandle);
  CHECK(contains(words(cudaErrorInvalidResourceHandle), "was never recorded"));
  CHECK(cudaEventRecord(end) == cudaSuccess);
  CHECK(cudaEventRecord(untimed, cudaStreamPerThread) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
  CHECK(milliseconds >= 0);
  CHECK(cudaEventElapsedTime(&milliseconds, start, untimed) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamWaitEvent(stream, end) == cudaSuccess);
  CHECK(cudaEventQuery(end) == cudaSuccess);
  CHECK(cudaEventDestroy(end) == cudaSuccess);
  CHECK(cudaEventSynchronize(end) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  CHECK(contains(words(cudaErrorInvalidResourceHandle), "is destroyed"));
  CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
  cudaEventDestroy(start);
  cudaEventDestroy(untimed);
}

TEST_CASE("host functions on a stream run, and capturing one is refused") {
  int calls = 0;
  CHECK(cudaLaunchHostFunc(
            nullptr, [](void* data) { ++*static_cast<int*>(data); }, &calls) == cudaSuccess);
  CHECK(calls == 1);
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaErrorNotSupported);
  CHECK(contains(words(cudaErrorNotSupported), "no CUDA graphs"));
}

TEST_CASE("the device is one of compute capability 9.0") {
  int count = 0, value = 0;
  CHECK((cudaGetDeviceCount(&count) == cudaSuccess && count == 1));
  CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
  CHECK(contains(words(cudaErrorInvalidDevice), "there is device 0 only, not device 1"));
  cudaDeviceProp properties;
  REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK((properties.major == 9 && properties.minor == 0 && properties.warpSize == 32));
  CHECK(properties.sharedMemPerBlockOptin == 227 * 1024);
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) == cudaSuccess);
  CHECK(value == 227 * 1024);
  CHECK(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0) ==
        cudaErrorInvalidValue);
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096) == cudaSuccess);
  std::size_t limit = 0;
  CHECK((cudaDeviceGetLimit(&limit, cudaLimitStackSize) == cudaSuccess && limit == 4096));
  cudaGetLastError();
}

TEST_CASE("occupancy counts threads, blocks and shared memory of a multiprocessor") {
  int blocks = 0, block_size = 0;
  const auto active = [&](int threads, std::size_t shared) {
    REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty_kernel, threads, shared) ==
            cudaSuccess);
    return blocks;
  };
  CHECK(active(1024, 0) == 2);
  CHECK(active(100, 0) == 16);  // whole warps
  CHECK(active(32, 0) == 32);
  CHECK(active(128, 48 * 1024) == 4);  // and 1 KiB of each block is reserved
  CHECK(active(128, 49 * 1024) == 0);  // not asked for
  REQUIRE(cudaFuncSetAttribute(empty_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               100 * 1024) == cudaSuccess);
  CHECK(active(128, 100 * 1024) == 2);
  cudaFuncAttributes attributes;
  REQUIRE(cudaFuncGetAttributes(&attributes, empty_kernel) == cudaSuccess);
  CHECK(attributes.maxDynamicSharedSizeBytes == 100 * 1024);
  REQUIRE(cudaOccupancyMaxPotentialBlockSize(&blocks, &block_size, empty_kernel) == cudaSuccess);
  CHECK((blocks == 264 && block_size == 1024));
  REQUIRE(cudaOccupancyMaxPotentialBlockSize(&blocks, &block_size, empty_kernel, 0, 300) ==
          cudaSuccess);
  CHECK((blocks == 132 * 8 && block_size == 256));
  std::size_t shared = 0;
  REQUIRE(cudaOccupancyAvailableDynamicSMemPerBlock(&shared, empty_kernel, 2, 128) == cudaSuccess);
  CHECK(shared == 113 * 1024);
}

TEST_CASE("an error is said in CUDA's words where nothing more is known") {
  CHECK(std::string(cudaGetErrorName(cudaErrorIllegalAddress)) == "cudaErrorIllegalAddress");
  CHECK(std::string(cudaGetErrorString(cudaErrorIllegalAddress)) ==
        "an illegal memory access was encountered");
  CHECK(std::string(cudaGetErrorString(cudaSuccess)) == "no error");
  CHECK(std::string(cudaGetErrorName(static_cast<cudaError_t>(12345))) ==
        "unrecognized error code");
}

}  // namespace attn_diag::host
