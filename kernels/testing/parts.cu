// Kernels of a part of attention, and of inputs as codes, for tests: one thread a row. Each is there right and
// with a bug, by a run-time constant.
#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/coded_inputs.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

using attn_diag::Call;
using attn_diag::CodedInput;

constexpr int kThreads = 32;

enum Bug {
  kRight,
  kMaskOffByOne,    // of S
  kScaleMissing,    // of S
  kKeyNotWritten,   // key 1 of S
  kLastKeyNotInL,   // of S, v -> o
  kRowsOfVSwapped,  // keys 2i and 2i + 1, of S or P, v -> o
  kClearsItsInput,  // P
  kOtherScale,      // codes: the scale of the group before
  kNoZero,          // codes: the zero is not subtracted
};

__device__ float to_float(float x) { return x; }
__device__ float to_float(__half x) { return __half2float(x); }
__device__ void store(float& to, float x) { to = x; }
__device__ void store(__half& to, float x) { to = __float2half(x); }

// Grid (B * H, ceil(Sq / kThreads)), block kThreads, as all of them.
template <class Element, class Score>
__global__ void scores(const Element* q, const Element* k, Score* s, int n, int dim, float scale,
                       bool causal, Bug bug) {
  const long long head = blockIdx.x;
  const int row = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (row >= n) return;
  for (int key = 0; key < n; ++key) {
    float sum = 0.0f;
    for (int d = 0; d < dim; ++d)
      sum += to_float(q[(head * n + row) * dim + d]) * to_float(k[(head * n + key) * dim + d]);
    if (bug != kScaleMissing) sum *= scale;
    if (causal && key > row + (bug == kMaskOffByOne)) sum = -INFINITY;
    if (bug != kKeyNotWritten || key != 1) store(s[(head * n + row) * n + key], sum);
  }
}

// From scores as they are, or, with a scale, from q.k.
template <class Score, class Element>
__global__ void of_scores(const Score* s, const Element* v, Element* o, float* lse, int n, int dim,
                          Bug bug, float scale = 1.0f, bool causal = false) {
  const long long head = blockIdx.x;
  const int row = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (row >= n) return;
  s += (head * n + row) * n;
  const auto score = [&](int key) {
    const bool masked = causal && key > row + (bug == kMaskOffByOne);
    return masked ? -INFINITY : to_float(s[key]) * (bug == kScaleMissing ? 1.0f : scale);
  };
  float m = -INFINITY, l = 0.0f;
  for (int key = 0; key < n; ++key) m = fmaxf(m, score(key));
  for (int key = 0; key < n - (bug == kLastKeyNotInL); ++key) l += __expf(score(key) - m);
  for (int d = 0; d < dim; ++d) {
    float sum = 0.0f;
    for (int key = 0; key < n; ++key)
      sum += __expf(score(key) - m) *
             to_float(v[(head * n + (bug == kRowsOfVSwapped ? key ^ 1 : key)) * dim + d]);
    store(o[(head * n + row) * dim + d], sum / l);
  }
  lse[head * n + row] = m + logf(l);
}

template <class Prob, class Element>
__global__ void of_probs(Prob* p, const Element* v, Element* o, int n, int dim, Bug bug) {
  const long long head = blockIdx.x;
  const int row = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (row >= n) return;
  p += (head * n + row) * n;
  for (int d = 0; d < dim; ++d) {
    float sum = 0.0f;
    for (int key = 0; key < n; ++key)
      sum += to_float(p[key]) *
             to_float(v[(head * n + (bug == kRowsOfVSwapped ? key ^ 1 : key)) * dim + d]);
    store(o[(head * n + row) * dim + d], sum);
  }
  if (bug == kClearsItsInput) store(p[0], 0.0f);
}

// Codes of a tensor, and where the scale of a row is: scales + (batch, head, row) by these strides.
struct Coded {
  const std::uint8_t* codes;
  attn_diag::CodeType type;
  const float* scales;
  const int* zeros;
  int per_batch, per_head, per_row;
};

__device__ float value(const Coded& c, int b, int h, int row, long long at, Bug bug) {
  int group = b * c.per_batch + h * c.per_head + row * c.per_row;
  if (bug == kOtherScale && group > 0) --group;
  const int zero = bug == kNoZero ? 128 : c.zeros[group];
  const std::uint8_t code = c.codes[at];
  float x = static_cast<float>(code) - static_cast<float>(zero);
  if (c.type == attn_diag::CodeType::kInt8) x = static_cast<std::int8_t>(code);
  if (c.type == attn_diag::CodeType::kE4m3 || c.type == attn_diag::CodeType::kE5m2) {
    const bool is_e4m3 = c.type == attn_diag::CodeType::kE4m3;
    x = __half2float(__nv_cvt_fp8_to_halfraw(code, is_e4m3 ? __NV_E4M3 : __NV_E5M2));
  }
  return x * c.scales[group];
}

__global__ void of_codes(const __half* q, Coded k, Coded v, __half* o, float* lse, int heads, int n,
                         int dim, float scale, Bug bug) {
  const long long head = blockIdx.x;
  const int b = static_cast<int>(head) / heads, h = static_cast<int>(head) % heads;
  const int row = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (row >= n) return;
  const auto score = [&](int key) {
    float sum = 0.0f;
    for (int d = 0; d < dim; ++d)
      sum += __half2float(q[(head * n + row) * dim + d]) *
             value(k, b, h, key, (head * n + key) * dim + d, bug);
    return sum * scale;
  };
  float m = -INFINITY, l = 0.0f;
  for (int key = 0; key < n; ++key) m = fmaxf(m, score(key));
  for (int key = 0; key < n; ++key) l += __expf(score(key) - m);
  for (int d = 0; d < dim; ++d) {
    float sum = 0.0f;
    for (int key = 0; key < n; ++key)
      sum += __expf(score(key) - m) * value(v, b, h, key, (head * n + key) * dim + d, bug);
    o[(head * n + row) * dim + d] = __float2half(sum / l);
  }
  lse[head * n + row] = m + logf(l);
}

dim3 grid(const Call& c) {
  return dim3(c.batch() * c.heads(), (c.seqlen() + kThreads - 1) / kThreads);
}

template <Bug kBug>
void call_scores(const Call& c) {
  scores<<<grid(c), kThreads>>>(c.q<__half>(), c.k<__half>(), c.scores<float>(), c.seqlen(),
                                c.head_dim(), c.scale(), c.is_causal(), kBug);
}
// q.k, unscaled, in fp16.
void call_raw_half_scores(const Call& c) {
  scores<<<grid(c), kThreads>>>(c.q<__half>(), c.k<__half>(), c.scores<__half>(), c.seqlen(),
                                c.head_dim(), 1.0f, false, kRight);
}
template <Bug kBug, class Score>
void call_of_scores(const Call& c) {
  of_scores<<<grid(c), kThreads>>>(c.scores<Score>(), c.v<__half>(), c.o<__half>(), c.lse(),
                                   c.seqlen(), c.head_dim_v(), kBug);
}
template <Bug kBug, class Score>
void call_of_raw_scores(const Call& c) {
  of_scores<<<grid(c), kThreads>>>(c.scores<Score>(), c.v<__half>(), c.o<__half>(), c.lse(),
                                   c.seqlen(), c.head_dim_v(), kBug, c.scale(), c.is_causal());
}
void call_of_raw_scores_without_mask(const Call& c) {
  of_scores<<<grid(c), kThreads>>>(c.scores<float>(), c.v<__half>(), c.o<__half>(), c.lse(),
                                   c.seqlen(), c.head_dim_v(), kRight, c.scale());
}
template <Bug kBug, class Prob, class Element>
void call_of_probs(const Call& c) {
  of_probs<<<grid(c), kThreads>>>(c.probs<Prob>(), c.v<Element>(), c.o<Element>(), c.seqlen(),
                                  c.head_dim_v(), kBug);
}
void call_asks_for_probs(const Call& c) { c.probs<float>(); }
void call_asks_for_half_scores(const Call& c) { c.scores<__half>(); }
void call_asks_for_codes(const Call& c) { attn_diag::coded_k(c); }

// Attention whose S lies in memory as Score, in two kernels.
template <class Score>
void attend_by_s(const Call& c, float scale) {
  const attn_diag::DeviceBuffer<Score> s(static_cast<std::size_t>(c.batch()) * c.heads() *
                                         c.seqlen() * c.seqlen());
  scores<<<grid(c), kThreads>>>(c.q<__half>(), c.k<__half>(), s.data(), c.seqlen(), c.head_dim(),
                                scale, c.is_causal(), kRight);
  of_scores<<<grid(c), kThreads>>>(s.data(), c.v<__half>(), c.o<__half>(), c.lse(), c.seqlen(),
                                   c.head_dim_v(), kRight);
}
void call_half_s(const Call& c) { attend_by_s<__half>(c, c.scale()); }
void call_without_scale(const Call& c) { attend_by_s<float>(c, 1.0f); }

Coded coded(const Call& c, CodedInput& made, int input) {
  const attn_diag::Codes& codes = c.codes(input);
  const int heads = c.kv_heads(), rows = c.seqlen_k();
  Coded out{made.codes<std::uint8_t>(), codes.type, made.scales(), made.zeros(), 0, 0, 0};
  if (codes.per == attn_diag::ScalePer::kHead) out.per_head = 1;
  if (codes.per == attn_diag::ScalePer::kBatchHead) out.per_batch = heads, out.per_head = 1;
  if (codes.per == attn_diag::ScalePer::kToken)
    out.per_batch = heads * rows, out.per_head = rows, out.per_row = 1;
  return out;
}
template <Bug kBug>
void call_of_codes(const Call& c) {
  CodedInput k = attn_diag::coded_k(c), v = attn_diag::coded_v(c);
  of_codes<<<grid(c), kThreads>>>(c.q<__half>(), coded(c, k, 1), coded(c, v, 2), c.o<__half>(),
                                  c.lse(), c.heads(), c.seqlen(), c.head_dim(), c.scale(), kBug);
}

}  // namespace

#define SCORES(NAME, CALL)                                                                         \
  {                                                                                                \
    .name = NAME, .call = CALL, .part = Part::kScores, .masks = none | causal, .tile = { 32, 256 } \
  }
#define OF_SCORES(NAME, CALL, HALF)                                                \
  {                                                                                \
    .name = NAME, .call = CALL, .part = Part::kFromScores, .masks = none | causal, \
    .tile = {32, 256}, .s_in_input_type = HALF                                     \
  }
#define OF_RAW_SCORES(NAME, CALL, HALF)                                               \
  {                                                                                   \
    .name = NAME, .call = CALL, .part = Part::kFromRawScores, .masks = none | causal, \
    .tile = {32, 256}, .s_in_input_type = HALF                                        \
  }
#define OF_PROBS(NAME, CALL, TYPES, HALF)                                                          \
  {                                                                                                \
    .name = NAME, .call = CALL, .part = Part::kFromProbs, .dtypes = TYPES, .masks = none | causal, \
    .p_in_input_type = HALF                                                                        \
  }
#define OF_CODES(NAME, CALL, TYPE, PER)                           \
  {                                                               \
    .name = NAME, .call = CALL, .k_codes = {TYPE, ScalePer::PER}, \
    .v_codes = {TYPE, ScalePer::PER}, .tile = {                   \
      32,                                                         \
      256                                                         \
    }                                                             \
  }

ATTN_DIAG_EXPORT(
    SCORES("scores", call_scores<kRight>),
    SCORES("scores-mask-off-by-one", call_scores<kMaskOffByOne>),
    SCORES("scores-scale-missing", call_scores<kScaleMissing>),
    SCORES("scores-key-not-written", call_scores<kKeyNotWritten>),
    {.name = "raw-half-scores",
     .call = call_raw_half_scores,
     .part = Part::kScores,
     .tile = {32, 256},
     .s_in_input_type = true,
     .scores = Scores::kUnscaled},
    OF_SCORES("of-scores", (call_of_scores<kRight, float>), false),
    OF_SCORES("of-half-scores", (call_of_scores<kRight, __half>), true),
    OF_SCORES("of-scores-last-key-not-in-l", (call_of_scores<kLastKeyNotInL, float>), false),
    OF_SCORES("of-scores-rows-of-v-swapped", (call_of_scores<kRowsOfVSwapped, float>), false),
    OF_PROBS("of-probs", (call_of_probs<kRight, float, __half>), fp16, false),
    OF_PROBS("of-fp32-probs", (call_of_probs<kRight, float, float>), fp32, false),
    OF_PROBS("of-half-probs", (call_of_probs<kRight, __half, __half>), fp16, true),
    OF_PROBS("of-probs-rows-of-v-swapped", (call_of_probs<kRowsOfVSwapped, float, __half>), fp16,
             false),
    OF_PROBS("of-probs-clears-its-input", (call_of_probs<kClearsItsInput, float, __half>), fp16,
             false),
    SCORES("asks-for-probs", call_asks_for_probs),
    SCORES("asks-for-half-scores", call_asks_for_half_scores),
    {.name = "half-s", .call = call_half_s, .tile = {32, 256}},
    {.name = "half-s-declared", .call = call_half_s, .tile = {32, 256}, .s_in_input_type = true},
    {.name = "without-scale", .call = call_without_scale, .tile = {32, 256}},
    {.name = "asks-for-codes", .call = call_asks_for_codes},
    {.name = "of-unscaled-scores",
     .call = call_of_scores<kRight, float>,
     .part = Part::kFromScores,
     .scores = Scores::kUnscaled},
    OF_RAW_SCORES("of-raw-scores", (call_of_raw_scores<kRight, float>), false),
    OF_RAW_SCORES("of-raw-half-scores", (call_of_raw_scores<kRight, __half>), true),
    OF_RAW_SCORES("of-raw-scores-mask-off-by-one", (call_of_raw_scores<kMaskOffByOne, float>),
                  false),
    OF_RAW_SCORES("of-raw-scores-no-mask", call_of_raw_scores_without_mask, false),
    OF_RAW_SCORES("of-raw-scores-scale-missing", (call_of_raw_scores<kScaleMissing, float>), false),
    OF_CODES("int8-per-tensor", call_of_codes<kRight>, CodeType::kInt8, kTensor),
    OF_CODES("int8-per-token", call_of_codes<kRight>, CodeType::kInt8, kToken),
    OF_CODES("uint8-per-head", call_of_codes<kRight>, CodeType::kUint8, kHead),
    OF_CODES("uint8-per-batch-head", call_of_codes<kRight>, CodeType::kUint8, kBatchHead),
    OF_CODES("e4m3-without-scale", call_of_codes<kRight>, CodeType::kE4m3, kNone),
    OF_CODES("e4m3-per-head", call_of_codes<kRight>, CodeType::kE4m3, kHead),
    OF_CODES("e5m2-per-token", call_of_codes<kRight>, CodeType::kE5m2, kToken),
    OF_CODES("int8-other-scale", call_of_codes<kOtherScale>, CodeType::kInt8, kToken),
    OF_CODES("int8-other-heads-scale", call_of_codes<kOtherScale>, CodeType::kInt8, kBatchHead),
    OF_CODES("uint8-no-zero", call_of_codes<kNoZero>, CodeType::kUint8, kHead));
