// Artifact of the paper, Section 4.2: K is kept transposed in HBM so that neighbouring threads read
// neighbouring keys.
//   Q   : B x H x Sq x d
//   K^T : B x H x d x ldk      (ldk >= Sk, the allocation granularity of the cache)
//   V   : B x H x Sk x d
//   O   : B x H x Sq x d
// Launch with grid (Sq, H, B), block (THREADS), dynamic shared memory (d + Sk) * sizeof(float).

template <typename Elem, int THREADS>
__global__ void attention_kt(const Elem* __restrict__ Q, const Elem* __restrict__ KT,
                             const Elem* __restrict__ V, Elem* __restrict__ O,
                             float* __restrict__ logZ, int Sk, int ldk, int d, float beta) {
  extern __shared__ float shm[];
  float* const qv = shm;
  float* const score = shm + d;
  __shared__ float tree[THREADS];

  const int tid = threadIdx.x;
  const long bh = (long)blockIdx.z * gridDim.y + blockIdx.y;
  const long qrow = bh * gridDim.x + blockIdx.x;

  for (int x = tid; x < d; x += THREADS) qv[x] = static_cast<float>(Q[qrow * d + x]);
  __syncthreads();

  // (i) scores, coalesced along the keys
  float peak = -INFINITY;
  for (int key = tid; key < Sk; key += THREADS) {
    float a = 0.f;
    for (int x = 0; x < d; ++x)
      a = fmaf(qv[x], static_cast<float>(KT[(bh * d + x) * ldk + key]), a);
    a *= beta;
    score[key] = a;
    peak = fmaxf(peak, a);
  }
  tree[tid] = peak;
  __syncthreads();
  for (int half = THREADS >> 1; half > 0; half >>= 1) {
    if (tid < half) tree[tid] = fmaxf(tree[tid], tree[tid + half]);
    __syncthreads();
  }
  peak = tree[0];
  __syncthreads();

  // (ii) partition function
  float z = 0.f;
  for (int key = tid; key < Sk; key += THREADS) {
    const float e = expf(score[key] - peak);
    score[key] = e;
    z += e;
  }
  tree[tid] = z;
  __syncthreads();
  for (int half = THREADS >> 1; half > 0; half >>= 1) {
    if (tid < half) tree[tid] += tree[tid + half];
    __syncthreads();
  }
  z = tree[0];

  // (iii) expectation of V
  for (int x = tid; x < d; x += THREADS) {
    float a = 0.f;
    for (int key = 0; key < Sk; ++key)
      a = fmaf(score[key], static_cast<float>(V[(bh * Sk + key) * d + x]), a);
    O[qrow * d + x] = static_cast<Elem>(a / z);
  }
  if (logZ && tid == 0) logZ[qrow] = peak + logf(z);
}
