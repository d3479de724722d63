// Kernels that go wrong while they run, for tests of the command. fp32, BHSD, any size.
#include <cuda_runtime.h>

__global__ void attend(const float* q, const float* k, const float* v, float* o, float* lse, int sq,
                       int sk, int d, float scale) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, h = blockIdx.y;
  if (i >= sq) return;
  const float* row = q + (h * sq + i) * d;
  float m = -INFINITY, l = 0;
  for (int pass = 0; pass < 2; ++pass)
    for (int j = 0; j < sk; ++j) {
      float s = 0;
      for (int x = 0; x < d; ++x) s += row[x] * k[(h * sk + j) * d + x];
      if (pass == 0) m = fmaxf(m, s * scale);
      if (pass == 1) l += expf(s * scale - m);
    }
  for (int x = 0; x < d; ++x) {
    float sum = 0;
    for (int j = 0; j < sk; ++j) {
      float s = 0;
      for (int y = 0; y < d; ++y) s += row[y] * k[(h * sk + j) * d + y];
      sum += expf(s * scale - m) * v[(h * sk + j) * d + x];
    }
    o[(h * sq + i) * d + x] = sum / l;
  }
  lse[h * sq + i] = m + logf(l);
}

// Block (1, 0, 0), thread (2, 0, 0) alone goes wrong.
__device__ bool chosen() { return blockIdx.x == 1 && threadIdx.x == 2; }

__global__ void writes_null(float* o) {
  __syncthreads();
  volatile float* nowhere = nullptr;
  if (chosen()) nowhere[3] = o[0];
}

__global__ void writes_far(float* o, int n) {
  if (chosen()) o[n + 50000000] = 1.0f;
}

__global__ void writes_near(float* o, int n) {
  if (chosen()) o[n] = 1.0f;
}

__device__ __noinline__ float deeper(float* o, int depth) {
  volatile float local[256];
  for (int i = 0; i < 256; ++i) local[i] = o[0] + depth;
  return depth < 0 ? 0.0f : deeper(o, depth + 1) + local[depth % 256];
}

__global__ void overflows(float* o) {
  if (chosen()) o[0] = deeper(o, 1);
}

struct Slice {
  volatile float local[8];
  float* volatile out;
};

__global__ void spills_over(float* o, int n) {
  Slice slice;
  slice.out = o;
  for (int i = 0; i <= n; ++i) {
    slice.local[i] = 1.0f;
  }
  if (chosen()) *slice.out = slice.local[0];
}

__global__ void never_ends(float* o) {
  volatile float* p = o;
  if (chosen())
    while (p[0] == p[0] || p[0] != p[0]) {
    }
}

#include <attn_diag/kernels/bring.h>

static void run_right(const attn_diag::Call& c) {
  const int sq = c.seqlen_q();
  attend<<<dim3((sq + 3) / 4, c.batch() * c.heads()), 4>>>(c.q<float>(), c.k<float>(), c.v<float>(),
                                                           c.o<float>(), c.lse(), sq, c.seqlen_k(),
                                                           c.head_dim(), c.scale());
}

static int outputs(const attn_diag::Call& c) {
  return c.batch() * c.heads() * c.seqlen_q() * c.head_dim();
}

ATTN_DIAG_EXPORT(
    {.name = "right", .call = run_right, .dtypes = fp32},
    {.name = "spills-over",
     .call = [](const attn_diag::Call& c) { spills_over<<<2, 4>>>(c.o<float>(), 8); },
     .dtypes = fp32},
    {.name = "writes-null",
     .call = [](const attn_diag::Call& c) { writes_null<<<2, 4>>>(c.o<float>()); },
     .dtypes = fp32},
    {.name = "writes-far",
     .call = [](const attn_diag::Call& c) { writes_far<<<2, 4>>>(c.o<float>(), outputs(c)); },
     .dtypes = fp32},
    {.name = "writes-near",
     .call =
         [](const attn_diag::Call& c) {
           run_right(c);
           writes_near<<<2, 4>>>(c.o<float>(), outputs(c));
         },
     .dtypes = fp32},
    {.name = "overflows",
     .call = [](const attn_diag::Call& c) { overflows<<<2, 4>>>(c.o<float>()); },
     .dtypes = fp32},
    {.name = "never-ends",
     .call = [](const attn_diag::Call& c) { never_ends<<<2, 4>>>(c.o<float>()); },
     .dtypes = fp32},
    {.name = "crashes-later",
     .call =
         [](const attn_diag::Call& c) {
           run_right(c);
           volatile float* nowhere = nullptr;
           nowhere[0] = c.scale();
         },
     .dtypes = fp32});
