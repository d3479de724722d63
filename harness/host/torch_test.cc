// The stand-in for PyTorch's headers, used as the host code of an extension uses PyTorch.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include <cmath>
#include <vector>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

template <class scalar_t>
__global__ void scale_kernel(
    const torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> in, scalar_t* out,
    float scale, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const scalar_t x = in[i / in.size(1)][i % in.size(1)];
  out[i] = static_cast<scalar_t>(static_cast<float>(x) * scale);
}

std::vector<torch::Tensor> forward(const torch::Tensor& q, double scale,
                                   c10::optional<torch::Tensor> bias) {
  TORCH_CHECK(q.is_cuda(), "q must be a CUDA tensor");
  TORCH_CHECK(q.dim() == 2, "q must have 2 dimensions, not ", q.dim());
  const at::cuda::OptionalCUDAGuard guard(device_of(q));
  auto out = torch::empty_like(q);
  auto lse = torch::full({q.size(0)}, -INFINITY, q.options().dtype(torch::kFloat32));
  const int count = static_cast<int>(q.numel());
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::ScalarType::Half, at::ScalarType::BFloat16, q.scalar_type(), "scale", [&] {
        cudaLaunchConfig_t config;
        config.gridDim = dim3(static_cast<unsigned>(count + 31) / 32);
        config.blockDim = dim3(32);
        config.stream = at::cuda::getCurrentCUDAStream();
        const auto view = q.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>();
        C10_CUDA_CHECK(cudaLaunchKernelEx(&config, scale_kernel<scalar_t>, view,
                                          out.data_ptr<scalar_t>(), static_cast<float>(scale),
                                          count));
      });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  if (bias.has_value()) out = out.to(torch::kFloat);
  return {out, lse};
}

template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "";
}

torch::TensorOptions on_device(torch::ScalarType type) {
  return torch::dtype(type).device(torch::kCUDA);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "compiled, not run";
  m.def("forward", &forward, "forward", py::arg("q"), py::arg("scale") = 1.0);
}

TEST_CASE("an extension's host function launches its kernel for every element type") {
  const auto type = GENERATE(torch::kHalf, torch::kBFloat16, torch::kFloat, torch::kDouble);
  const auto q = torch::ones({3, 50}, on_device(type)).fill_(1.5);
  const auto result = forward(q, 2.0, c10::nullopt);
  REQUIRE(result.size() == 2);
  CHECK((result[0].scalar_type() == type && result[0].is_cuda()));
  CHECK(result[0][2][49].item<float>() == 3.0f);
  CHECK(result[1][0].item<float>() == -INFINITY);
  CHECK(forward(q, 2.0, q)[0].dtype() == torch::kFloat32);
}

TEST_CASE("what an extension checks fails with its words") {
  const auto q = torch::ones({3, 5});
  CHECK(contains(refusal([&] { forward(q, 1, {}); }), "q must be a CUDA tensor"));
  CHECK(contains(refusal([&] { forward(q.cuda().view({15}), 1, {}); }),
                 "q must have 2 dimensions, not 1"));
  CHECK(contains(refusal([&] { forward(q.to(torch::kInt).cuda(), 1, {}); }),
                 "\"scale\" not implemented for 'Int'"));
  CHECK(contains(refusal([&] { q.data_ptr<double>(); }),
                 "expected scalar type Double but found Float"));
  CHECK(contains(refusal([&] { static_cast<void>(q.packed_accessor32<float, 3>()); }),
                 "expected 3 dims but tensor has 2"));
  CHECK(contains(refusal([&] { C10_CUDA_CHECK(cudaSetDevice(3)); }), "there is device 0 only"));
  CHECK(contains(refusal([&] { TORCH_CHECK(q.size(0) == 4); }), "Expected q.size(0) == 4"));
  CHECK(contains(refusal([&] { TORCH_CHECK_EQ(q.size(1), 4); }), "q.size(1) is 5, not 4, 4"));
  CHECK(contains(refusal([&] { static_cast<void>(q.size(2)); }), "[-2, 1], but got 2"));
}

TEST_CASE("views share memory by their strides") {
  std::vector<float> memory(24);
  for (int i = 0; i < 24; ++i) memory[static_cast<std::size_t>(i)] = static_cast<float>(i);
  const auto t = torch::from_blob(memory.data(), {2, 3, 4}, torch::kFloat32);
  CHECK(t.is_contiguous());
  CHECK(t.strides() == at::IntArrayRef({12, 4, 1}));
  const auto swapped = t.transpose(1, 2);
  CHECK((swapped.size(1) == 4 && swapped.stride(1) == 1 && swapped.stride(-1) == 4));
  CHECK_FALSE(swapped.is_contiguous());
  CHECK(contains(refusal([&] { swapped.view({24}); }), "use reshape"));
  const auto copied = swapped.contiguous();
  CHECK(copied.data_ptr() != t.data_ptr());
  CHECK(copied.data_ptr<float>()[1] == 4.0f);
  CHECK(swapped.reshape({-1, 6}).size(0) == 4);
  CHECK(t.view({-1}).data_ptr() == t.data_ptr());
  CHECK(contains(refusal([&] { t.view({5, -1}); }), "is invalid for input of size 24"));
  CHECK(t.permute({2, 0, 1}).sizes() == at::IntArrayRef({4, 2, 3}));
  CHECK(t.flatten(1).sizes() == at::IntArrayRef({2, 12}));
  CHECK(t.unsqueeze(-1).sizes() == at::IntArrayRef({2, 3, 4, 1}));
  CHECK(t.select(1, -1).data_ptr<float>()[0] == 8.0f);
  CHECK(t.slice(2, 1, 99).size(2) == 3);
  CHECK(t.select(0, 1).expand({5, 3, 4}).stride(0) == 0);
  t.narrow(2, 3, 1).zero_();
  CHECK((memory[3] == 0 && memory[7] == 0 && memory[2] == 2));
}

TEST_CASE("elements convert between types and devices") {
  const auto t = torch::full({1}, 1.0 / 3, torch::kDouble);
  CHECK(t.half().item<float>() == __half2float(__float2half(1.0f / 3)));
  CHECK(t.bfloat16().item<double>() == 0.333984375);
  CHECK(torch::full({1}, 7.9).to(torch::kInt).item<int>() == 7);
  CHECK(torch::full({1}, 3).to(torch::kBool).item<bool>());
  const auto there = t.to(torch::Device("cuda:0"), torch::kFloat);
  CHECK((there.is_cuda() && there.device().str() == "cuda:0" && there.get_device() == 0));
  CHECK(there.cpu().item<float>() == 1.0f / 3);
  CHECK(t.to(torch::kDouble).data_ptr() == t.data_ptr());  // nothing to do
  const auto copy = torch::zeros({2, 3});
  copy.copy_(torch::ones({3}));  // broadcast
  CHECK(copy[1][2].item<float>() == 1);
  CHECK(contains(refusal([&] { torch::Device("gpu"); }), "neither cpu nor cuda"));
}

TEST_CASE("sums over dims, of partial results as of a split-K kernel") {
  const at::OptionalDeviceGuard guard{at::Device(torch::kCUDA)};
  auto x = torch::empty({2, 3, 2}, on_device(torch::kFloat32));
  for (int i = 0; i < 12; ++i) x[i / 6][i / 2 % 3][i % 2].fill_(i);
  const auto first = x.sum(0);
  CHECK(first.sizes() == c10::IntArrayRef({3, 2}));
  CHECK(first[1][0].item<float>() == 10);  // 2 + 8
  CHECK(x.transpose(0, 2).sum(-1)[1][2].item<float>() == 5 + 11);
  const auto kept = x.sum({0, 2}, true, torch::kFloat16);
  CHECK(kept.sizes() == c10::IntArrayRef({1, 3, 1}));
  CHECK(kept.scalar_type() == torch::kFloat16);
  CHECK(kept[0][2][0].item<float>() == 4 + 5 + 10 + 11);
  CHECK(torch::empty({4}, on_device(torch::kUInt64)).itemsize() == 8);
}

TEST_CASE("PyTorch's 16-bit types compute in float and round once") {
  const c10::Half a(1.5f), b(2.0f);
  c10::Half sum = a + b;
  sum += a;
  CHECK(static_cast<float>(sum) == 5.0f);
  CHECK(static_cast<float>(a * 0.5f) == 0.75f);
  const __half native = a;
  CHECK(__half2float(native) == 1.5f);
  CHECK(static_cast<float>(std::numeric_limits<c10::BFloat16>::lowest()) < -3e38f);
  CHECK(static_cast<float>(-c10::BFloat16(2.0f) / c10::BFloat16(4.0f)) == -0.5f);
}

TEST_CASE("device memory of a tensor is freed with the last that refers to it") {
  std::size_t before = 0, during = 0, after = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&before, &total) == cudaSuccess);
  {
    torch::Tensor row;
    {
      const auto t = torch::zeros({4, 256}, on_device(torch::kFloat));
      row = t[1];
    }
    REQUIRE(cudaMemGetInfo(&during, &total) == cudaSuccess);
  }
  REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
  CHECK((before - during == 4096 && after == before));
}

}  // namespace attn_diag::host
