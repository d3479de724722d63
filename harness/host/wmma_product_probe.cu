// Prints what tensor cores make of given matrices, to the bit: how they align, cut and add.
//
// Plain CUDA C++: the same file runs on a device and on the host executor, which must agree with
// fixtures/wmma/products_sm90.csv, printed by an H200.
//   nvcc -std=c++20 -arch=sm_90 -o wmma_product_probe harness/host/wmma_product_probe.cu
//   ./wmma_product_probe                                       # prints
//   ./wmma_product_probe fixtures/wmma/products_sm90.csv       # compares; exit code 1 and the lines that differ
// The host executor's is build target wmma_product_probe; the ctest of that name compares. Devices of
// other architectures may well differ: then the host executor's default order is not theirs.
//
// One line a type and kind of matrices, d = a b + c with m16n16k16:
//   type,kind,products,hash,first
// hash    FNV-1a, 64 bits, over the bits of all elements of d
// first   the bits of d[0][0..3] of the first product
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace wmma = nvcuda::wmma;

constexpr int kSize = 16;
constexpr int kCells = kSize * kSize;
constexpr int kProducts = 512;

// a, b, c, d: kProducts matrices (16, 16), row by row. A block forms one product.
template <class T>
__global__ void multiply(const T* a, const T* b, const float* c, float* d) {
  const int at = static_cast<int>(blockIdx.x) * kCells;
  wmma::fragment<wmma::matrix_a, kSize, kSize, kSize, T, wmma::row_major> rA;
  wmma::fragment<wmma::matrix_b, kSize, kSize, kSize, T, wmma::row_major> rB;
  wmma::fragment<wmma::accumulator, kSize, kSize, kSize, float> rC;
  wmma::load_matrix_sync(rA, a + at, kSize);
  wmma::load_matrix_sync(rB, b + at, kSize);
  wmma::load_matrix_sync(rC, c + at, kSize, wmma::mem_row_major);
  wmma::mma_sync(rC, rA, rB, rC);
  wmma::store_matrix_sync(d + at, rC, kSize, wmma::mem_row_major);
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "wmma_product_probe: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}

// splitmix64: the same numbers on every machine.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : x_state(seed) {}
  std::uint64_t bits() {
    x_state += 0x9E3779B97F4A7C15u;
    std::uint64_t x = x_state;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
  int below(int n) { return static_cast<int>(bits() >> 33) % n; }
  // In [-1, 1), a multiple of 2^-23.
  float uniform() { return static_cast<float>(bits() >> 40) * 0x1p-23f - 1; }

 private:
  std::uint64_t x_state;
};

struct Kind {
  const char* name;
  int least_exponent, exponents;  // of the factors
  bool positive;
  float of_c;  // magnitude of c
  int zeros;   // one factor in `zeros` is 0; 0: none
};
// "subnormal" goes below 2^-14, where halves are subnormal.
constexpr Kind kKinds[] = {
    {"alike", 0, 1, false, 4.0f, 0},        {"positive", 0, 1, true, 0.0f, 0},
    {"wide", -6, 13, false, 1.0f, 0},       {"sparse", 0, 1, false, 100.0f, 3},
    {"subnormal", -22, 10, false, 0.0f, 0}, {"small c", -3, 4, false, 1e-3f, 0},
};

template <class T>
T factor(Numbers& numbers, const Kind& kind) {
  // One after the other: compilers differ in the order in which they evaluate arguments.
  const int exponent = kind.least_exponent + numbers.below(kind.exponents);
  float x = std::ldexp(numbers.uniform(), exponent);
  if (kind.positive) x = std::fabs(x);
  if (kind.zeros > 0 && numbers.below(kind.zeros) == 0) x = 0;
  return static_cast<T>(x);
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& from) : x_bytes(from.size() * sizeof(T)) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, x_bytes), "cudaMalloc");
    x_memory = static_cast<T*>(memory);
    check(cudaMemcpy(x_memory, from.data(), x_bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~DeviceArray() { cudaFree(x_memory); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  void read(std::vector<T>& to) const {
    check(cudaMemcpy(to.data(), x_memory, x_bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  }
  T* get() const { return x_memory; }

 private:
  std::size_t x_bytes;
  T* x_memory = nullptr;
};

template <class T>
void probe(std::ostream& out, const char* type, const Kind& kind) {
  Numbers numbers(static_cast<std::uint64_t>(&kind - kKinds) + 1);
  std::vector<T> a, b;
  std::vector<float> c, d(kProducts * kCells);
  for (int i = 0; i < kProducts * kCells; ++i) {
    a.push_back(factor<T>(numbers, kind));
    b.push_back(factor<T>(numbers, kind));
    c.push_back(kind.of_c * numbers.uniform());
  }
  const DeviceArray<T> device_a(a), device_b(b);
  const DeviceArray<float> device_c(c), device_d(d);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kProducts);
  config.blockDim = dim3(32);
  check(cudaLaunchKernelEx(&config, multiply<T>, static_cast<const T*>(device_a.get()),
                           static_cast<const T*>(device_b.get()),
                           static_cast<const float*>(device_c.get()), device_d.get()),
        "launch");
  check(cudaDeviceSynchronize(), "kernel");
  device_d.read(d);
  std::uint64_t hash = 0xCBF29CE484222325u;
  std::vector<std::uint32_t> bits(d.size());
  std::memcpy(bits.data(), d.data(), d.size() * sizeof(float));
  for (const std::uint32_t word : bits)
    for (int byte = 0; byte < 4; ++byte)
      hash = (hash ^ (word >> (8 * byte) & 0xFFu)) * 0x100000001B3u;
  char text[128];
  std::snprintf(text, sizeof text, "%s,%s,%d,%016llx,%08x %08x %08x %08x\n", type, kind.name,
                kProducts, static_cast<unsigned long long>(hash), bits[0], bits[1], bits[2],
                bits[3]);
  out << text;
}

// The number of lines in which `found` and the file differ; they are printed.
int differences(std::istream& found, std::istream& file) {
  int count = 0;
  for (int number = 1;; ++number) {
    std::string here, there;
    const bool some = static_cast<bool>(std::getline(found, here));
    if (!static_cast<bool>(std::getline(file, there)) && !some) return count;
    if (here == there) continue;
    ++count;
    std::printf("line %d\n  found    %s\n  expected %s\n", number, here.c_str(), there.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::stringstream found;
  found << "type,kind,products,hash,first\n";
  for (const Kind& kind : kKinds) probe<half>(found, "half", kind);
  for (const Kind& kind : kKinds) probe<__nv_bfloat16>(found, "bfloat16", kind);
  if (argc < 2) {
    std::fputs(found.str().c_str(), stdout);
    return 0;
  }
  std::ifstream file(argv[1]);
  if (!file) {
    std::fprintf(stderr, "wmma_product_probe: cannot read %s\n", argv[1]);
    return 2;
  }
  const int count = differences(found, file);
  if (count == 0)
    std::printf("wmma products: as in %s\n", argv[1]);
  else
    std::printf("wmma products: %d lines differ from %s\n", count, argv[1]);
  return count == 0 ? 0 : 1;
}
