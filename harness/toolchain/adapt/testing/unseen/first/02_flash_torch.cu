#include <cuda.h>
#include <cuda_runtime.h>
#include <torch/types.h>

// Tiled attention forward (FlashAttention-1, algorithm 1).
// One block per (batch, head); one thread per row of the Q tile.
__global__ void forward_kernel(const float* Q, const float* K, const float* V, const int N,
                               const int d, const int Tc, const int Tr, const int Bc, const int Br,
                               const float softmax_scale, float* l, float* m, float* O) {
  int tx = threadIdx.x;
  int bx = blockIdx.x;
  int by = blockIdx.y;  // batch and head index

  int qkv_offset = (bx * gridDim.y * N * d) + (by * N * d);
  int lm_offset = (bx * gridDim.y * N) + (by * N);

  extern __shared__ float sram[];
  int tile_size = Bc * d;  // size of Qi, Kj, Vj
  float* Qi = sram;
  float* Kj = &sram[tile_size];
  float* Vj = &sram[tile_size * 2];
  float* S = &sram[tile_size * 3];

  for (int j = 0; j < Tc; j++) {
    // Load Kj, Vj to SRAM
    for (int x = 0; x < d; x++) {
      Kj[(tx * d) + x] = K[qkv_offset + (tile_size * j) + (tx * d) + x];
      Vj[(tx * d) + x] = V[qkv_offset + (tile_size * j) + (tx * d) + x];
    }
    __syncthreads();

    for (int i = 0; i < Tr; i++) {
      // each thread only reads back the row of Qi it wrote
      for (int x = 0; x < d; x++) {
        Qi[(tx * d) + x] = Q[qkv_offset + (tile_size * i) + (tx * d) + x];
      }
      float row_m_prev = m[lm_offset + (Br * i) + tx];
      float row_l_prev = l[lm_offset + (Br * i) + tx];

      // S = QK^T, row_m = rowmax(S)
      float row_m = -INFINITY;
      for (int y = 0; y < Bc; y++) {
        float sum = 0;
        for (int x = 0; x < d; x++) {
          sum += Qi[(tx * d) + x] * Kj[(y * d) + x];
        }
        sum *= softmax_scale;
        S[(Bc * tx) + y] = sum;

        if (sum > row_m) row_m = sum;
      }

      // P = exp(S - row_m), row_l = rowsum(P)
      float row_l = 0;
      for (int y = 0; y < Bc; y++) {
        S[(Bc * tx) + y] = __expf(S[(Bc * tx) + y] - row_m);
        row_l += S[(Bc * tx) + y];
      }

      // Compute new m and l
      float row_m_new = max(row_m_prev, row_m);
      float row_l_new =
          (__expf(row_m_prev - row_m_new) * row_l_prev) + (__expf(row_m - row_m_new) * row_l);

      // Write O, l, m to HBM
      for (int x = 0; x < d; x++) {
        float pv = 0;  // Pij * Vj
        for (int y = 0; y < Bc; y++) {
          pv += S[(Bc * tx) + y] * Vj[(y * d) + x];
        }
        O[qkv_offset + (tile_size * i) + (tx * d) + x] =
            (1 / row_l_new) * ((row_l_prev * __expf(row_m_prev - row_m_new) *
                                O[qkv_offset + (tile_size * i) + (tx * d) + x]) +
                               (__expf(row_m - row_m_new) * pv));
      }
      m[lm_offset + (Br * i) + tx] = row_m_new;
      l[lm_offset + (Br * i) + tx] = row_l_new;
    }
    __syncthreads();  // otherwise, thread can use the wrong Kj, Vj in inner loop
  }
}

torch::Tensor forward(torch::Tensor Q, torch::Tensor K, torch::Tensor V) {
  const int Bc = 32;
  const int Br = 32;

  const int B = Q.size(0);
  const int nh = Q.size(1);
  const int N = Q.size(2);
  const int d = Q.size(3);
  TORCH_CHECK(N % Bc == 0, "sequence length must be a multiple of 32");

  const int Tc = N / Bc;
  const int Tr = N / Br;
  const float softmax_scale = 1.0 / sqrt(d);

  // Initialize O, l, m to HBM
  auto O = torch::zeros_like(Q);
  auto l = torch::zeros({B, nh, N});
  auto m = torch::full({B, nh, N}, -INFINITY);
  torch::Device device(torch::kCUDA);
  l = l.to(device);
  m = m.to(device);

  const int sram_size = (3 * Bc * d * sizeof(float)) + (Bc * Br * sizeof(float));
  int max_sram_size;
  cudaDeviceGetAttribute(&max_sram_size, cudaDevAttrMaxSharedMemoryPerBlock, 0);
  TORCH_CHECK(sram_size <= max_sram_size, "head_dim too large for shared memory");

  dim3 grid_dim(B, nh);  // batch_size x num_heads
  dim3 block_dim(Bc);    // Bc threads per block

  forward_kernel<<<grid_dim, block_dim, sram_size>>>(
      Q.data_ptr<float>(), K.data_ptr<float>(), V.data_ptr<float>(), N, d, Tc, Tr, Bc, Br,
      softmax_scale, l.data_ptr<float>(), m.data_ptr<float>(), O.data_ptr<float>());
  return O;
}
