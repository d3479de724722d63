// Forms that strangers' sources have: macros that launch, caches, classes, outputs of another order. That drafts of
// such sources build and run is tried by tools/attn_diag/adapt_cli_test.py.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/temporary_directory.h"
#include "harness/toolchain/adapt/adapt.h"

namespace attn_diag::adapt {
namespace {

Draft draft_of(const std::string& text) {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "mine.cu";
  std::ofstream(file) << text;
  return draft_adapter({file, "", directory.path(), std::nullopt});
}

std::string notes(const Draft& draft, NoteKind kind) {
  std::string text;
  for (const Note& note : draft.notes)
    if (note.kind == kind) text += note.text + "\n";
  return text;
}

const std::string kTensors = "const half* q, const half* k, const half* v, half* o, ";
const std::string kSizes = "int B, int H, int S, int D";

// A kernel of these parameters and a function that launches it, behind comments and declarations.
std::string source(const std::string& parameters, const std::string& before = "",
                   const std::string& kernel = "") {
  return before + "\n__global__ void attend(" + parameters + ") {\n" + kernel +
         "\n}\nvoid attention(" + parameters + ") {\n  attend<<<1, 32>>>(q, k, v, o);\n}\n";
}

}  // namespace

TEST_CASE("a macro that launches is read as what it stands for") {
  const std::string kernel =
      "template <class T, int D, bool kCausal> __global__ void attend(const T* q, const T* k, "
      "const T* v, T* o) {}\n";
  const std::string head =
      "template <class T> void attention(const T* q, const T* k, const T* v, T* o, ";
  for (const char* macros : {"#define LAUNCH(D, C) attend<T, D, C><<<1, 32>>>(q, k, v, o)\n",
                             "#define RUN(D, ...) attend<T, D, __VA_ARGS__><<<1, 32>>>(q, k, v, "
                             "o)\n#define LAUNCH(D, C) RUN(D, C)\n",
                             "#define LAUNCH(D, C) att##end<T, D, C><<<1, 32>>>(q, k, v, o)\n"}) {
    INFO(macros);
    const Draft draft =
        draft_of(kernel + head + kSizes + ", bool causal) {\n" + macros +
                 "switch (D) { case 64: LAUNCH(64, false); break; case 96: LAUNCH(96, true); }\n"
                 "#undef LAUNCH\n}\ntemplate void attention<half>(const half*, const half*, "
                 "const half*, half*, int, int, int, int, bool);\n");
    CHECK_THAT(draft.text, contains("attention<half>(c.q<half>()") && contains("{64, 96}"));
  }
}

TEST_CASE("a macro that stands for itself, or for ever more, ends") {
  CHECK_NOTHROW(draft_of("#define LAUNCH(D) LAUNCH(D) + attend<<<1, 32>>>(D)\n" +
                         source(kTensors + kSizes, "", "LAUNCH(1);")));
  std::string doubling = "#define A0(x) attend<<<1, 32>>>(x)\n";
  for (int i = 1; i < 40; ++i)
    doubling += fmt::format("#define A{0}(x) A{1}(x) A{1}(x)\n", i, i - 1);
  CHECK_NOTHROW(draft_of(doubling + source(kTensors + kSizes, "", "A39(1);")));
}

TEST_CASE("a table of pages makes K and V a cache, in the order of comments") {
  const std::string parameters =
      kTensors +
      "const int* block_tables, const int* seq_lens, int num_seqs, int H, int D, "
      "int max_num_blocks_per_seq";
  const auto orders = [&](const std::string& comment) {
    return draft_of(source(parameters, comment + "\nconstexpr int BLOCK_SIZE = 32;")).text;
  };
  CHECK_THAT(orders("// k_cache, v_cache: [num_blocks, block_size, H, D]"),
             contains("cache(c, {32, attn_diag::CacheOrder::kTokensHeads, "
                      "attn_diag::CacheOrder::kTokensHeads, 8});"));
  CHECK_THAT(
      orders("// k_cache [num_blocks, H, D / 4, block_size, 4], v_cache [num_blocks, H, D, "
             "block_size]"),
      contains("{32, attn_diag::CacheOrder::kChunks, attn_diag::CacheOrder::kHeadsDims, 4}"));
  const std::string text = orders("// k_cache: [num_blocks, H, block_size, D]");
  CHECK_THAT(
      text,
      contains(
          "attention(c.q<half>(), cache.k(), cache.v(), c.o<half>(), "
          "reinterpret_cast<int*>(cache.table()), seq_lens_buffer.data(), c.batch(), c.heads(), "
          "c.head_dim(), cache.pages_per_batch())") &&
          contains("kHeadsTokens") && contains("kv_cache.h") &&
          contains("seq_lens_values.push_back(c.seqlen_k())"));
}

TEST_CASE("a template's type that its name says is that of indices is int") {
  const std::string parameters =
      "const T* q, const T* k_cache, const T* v_cache, T* o, const Tindex* block_tables, "
      "const Tindex* seq_lens, int num_seqs, int H, int D, int max_num_blocks_per_seq";
  const std::string head = "template <class Tindex, class T> ";
  const Draft draft = draft_of(
      "constexpr int BLOCK_SIZE = 32;\n// k_cache, v_cache: [num_blocks, H, block_size, D]\n" +
      head + "__global__ void attend(" + parameters + ") {}\n" + head + "void attention(" +
      parameters +
      ") {\n  attend<Tindex, T><<<1, 32>>>(q, k_cache, v_cache, o, block_tables, "
      "seq_lens, num_seqs, H, D, max_num_blocks_per_seq);\n}\n");
  CHECK_THAT(draft.text, contains("attention<int, float>(") && contains("cache.table()") &&
                             contains("seq_lens_buffer.data()"));
}

TEST_CASE("a cache in memory without a type has the type that the code uses") {
  const auto parameters = [](const std::string& type) {
    return "const " + type + "* q, const " + type + "* k_cache, const " + type + "* v_cache, " +
           type +
           "* o, const int* block_tables, const int* seq_lens, int num_seqs, int H, int D, "
           "int max_num_blocks_per_seq";
  };
  const Draft draft = draft_of(
      "constexpr int BLOCK_SIZE = 32;\n// k_cache, v_cache: [num_blocks, H, block_size, D]\n"
      "__global__ void attend(" +
      parameters("half") + ") {}\nvoid attention(" + parameters("void") +
      ") {\n  attend<<<1, 32>>>((const half*)q, (const half*)k_cache, (const half*)v_cache, "
      "(half*)o, "
      "block_tables, seq_lens, num_seqs, H, D, max_num_blocks_per_seq);\n}\n");
  CHECK_THAT(draft.text, contains("attn_diag::KvCache<half> cache("));
}

TEST_CASE("the order of a cache is what its index says, where no comment does") {
  const auto order = [&](const std::string& index) {
    const std::string parameters =
        "const half* q, const half* k_pool, const half* v_pool, half* o, const int* block_tables, "
        "const int* seq_lens, int num_seqs, int num_heads, int D, int max_num_blocks_per_seq";
    return draft_of(
               "constexpr int BLOCK_SIZE = 16;\n__global__ void kernel(" + parameters +
               ") {\n  const int p_block = block_tables[0];\n  o[0] = q[0] * k_pool[" + index +
               "] * v_pool[0];\n}\nvoid attention(" + parameters +
               ") {\n  kernel<<<1, 32>>>(q, k_pool, v_pool, o, block_tables, seq_lens, num_seqs, "
               "num_heads, D, max_num_blocks_per_seq);\n}\n")
        .text;
  };
  CHECK_THAT(order("(static_cast<size_t>(p_block) * num_heads + 1) * (BLOCK_SIZE * 64)"),
             contains("CacheOrder::kHeadsTokens, attn_diag::CacheOrder::kHeadsTokens"));
  CHECK_THAT(order("((p_block * BLOCK_SIZE + 3) * num_heads + 1) * 64"),
             contains("CacheOrder::kTokensHeads, attn_diag::CacheOrder::kTokensHeads"));
}

TEST_CASE("a structure of parameters may be an instance of a template") {
  const auto draft = [](const std::string& given) {
    return draft_of(
               "template <class T, class A = T> struct Params {\n  const T* q;\n  const T* k;\n  "
               "const T* v;\n"
               "  A* o;\n  float* lse;\n  int batch, heads, seqlen, head_dim;\n  float scale;\n};\n"
               "__global__ void kernel(Params<" +
               given +
               "> p) { p.o[0] = p.q[0]; }\n"
               "void attention(const Params<" +
               given + ">& p) { kernel<<<1, 32>>>(p); }\n")
        .text;
  };
  CHECK_THAT(draft("half"), contains("Params<half> ") && contains("c.q<half>()") &&
                                contains("c.o<half>()") && contains(".dtypes = fp16"));
  CHECK_THAT(draft("half, float"), contains("c.q<half>()") && contains("c.o<float>()"));
}

TEST_CASE("beside a flag that says causal another mask is none of ours") {
  const Draft draft = draft_of(source(kTensors + kSizes + ", int use_mask, int is_causal"));
  CHECK_THAT(draft.text, contains("c.is_causal())"));
  CHECK_THAT(draft.text, !contains("c.is_causal(), "));
}

TEST_CASE("a length of keys without one of queries is that of decoding") {
  const Draft draft = draft_of(source(kTensors + "int B, int H, int kv_len, int D"));
  CHECK_THAT(draft.text, contains("c.seqlen_q() != 1") &&
                             contains("c.heads(), c.seqlen_k(), c.head_dim())") &&
                             contains(".other_seqlen_k = true"));
  CHECK_THAT(draft.run_flags, contains("--seqlen-q 1"));
  CHECK_THAT(draft_of(source(kTensors + "int B, int H, int q_len, int kv_len, int D")).text,
             !contains("c.seqlen_q() != 1"));
  CHECK_THAT(draft_of(source(kTensors + kSizes)).text, !contains("c.seqlen_q() != 1"));
}

TEST_CASE("an array of strides has the order in which the kernel is given them") {
  const Draft draft = draft_of(
      "__global__ void attend(const half* q, half* o, int stride_qh, int stride_qz, int stride_qm) "
      "{}\n"
      "void attention(" +
      kTensors + kSizes +
      ", const int q_strides[3]) {\n"
      "attend<<<1, 32>>>(q, o, q_strides[1], q_strides[0], q_strides[2]);\n}\n");
  CHECK_THAT(
      draft.text,
      contains("const int q_strides_values[] = {static_cast<int>(c.q_strides().batch), "
               "static_cast<int>(c.q_strides().head), static_cast<int>(c.q_strides().seq)};"));
}

TEST_CASE("an output or log-sum-exp of another order goes through a buffer that is stored") {
  const Draft merged = draft_of(source(
      kTensors + kSizes, "// q, k, v: [B, H, S, D]\n// v: [B, H, S, D]\n// o: [B, S, H, D]"));
  CHECK_THAT(merged.text, contains("attn_diag::OutputInOtherLayout<half> output(c);") &&
                              contains("output.data()") && contains("output.store();") &&
                              !contains("bshd"));
  const Draft same =
      draft_of(source(kTensors + kSizes, "// q, k, v: [B, S, H, D]\n// o: [B, S, H, D]"));
  CHECK_THAT(same.text, !contains("OtherLayout") && contains(".layouts = bshd"));
  const std::string varlen =
      kTensors + "float* lse, const int* cu_seqlens, int B, int H, int total_q, int S, int D";
  CHECK_THAT(draft_of(source(varlen, "", "lse[h * total_q + i] = m + logf(l);")).text,
             contains("attn_diag::LseHeadsFirst lse(c);") && contains("lse.store();"));
  CHECK_THAT(draft_of(source(varlen, "// lse is [H, total_q]")).text, contains("LseHeadsFirst"));
  CHECK_THAT(draft_of(source(varlen, "", "lse[i * H + h] = m + logf(l);")).text,
             !contains("LseHeadsFirst"));
}

TEST_CASE("a member is called on an object made of what its class takes, a static one without") {
  const std::string kernel = "__global__ void attend(const float* q) {}\n";
  const std::string method =
      "void forward(const float* q, const float* k, const float* v, float* o, int S) {\n"
      "attend<<<1, 32>>>(q);\n}\n";
  CHECK_THAT(
      draft_of(
          kernel +
          "namespace nn {\nclass Layer {\n public:\n  Layer(int batch, int heads, int headDim, "
          "bool causal) {}\n  ~Layer() {}\n  " +
          method + "};\n}\n")
          .text,
      contains("nn::Layer object(c.batch(), c.heads(), c.head_dim(), c.is_causal());") &&
          contains("object.forward(c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(), "
                   "c.seqlen())"));
  CHECK_THAT(draft_of(kernel + "struct Runner {\n  static " + method + "};\n").text,
             contains("Runner::forward(c.q<float>()"));
  CHECK_THROWS_WITH(draft_of(kernel + "struct Runner {\n  " + method + "};\n"),
                    contains("it is a member of a class that nothing here says how to make"));
}

TEST_CASE("a structure with a constructor is made by it") {
  const std::string scratch = "struct Scratch { float* s; Scratch(int b, int n_q, int s_) { } };\n";
  CHECK_THAT(
      draft_of(source(kTensors + "const Scratch& scratch, int b, int n_q, int n_kv, int s, int d",
                      scratch))
          .text,
      contains("Scratch scratch(c.batch(), c.heads(), "));
}

TEST_CASE("an alias of the function's namespace is known by what it stands for") {
  const std::string code =
      "using elem_t = half;\n__global__ void attend(const elem_t* q) {}\n"
      "void attention(const elem_t* q, const elem_t* k, const elem_t* v, elem_t* o, int B, int H, "
      "int S, int D) { attend<<<1, 32>>>(q); }\n";
  CHECK_THAT(draft_of("namespace ns {\n" + code + "}\n").text, contains("c.q<half>()"));
  CHECK_THAT(draft_of(code).text, contains("c.q<elem_t>()"));
}

TEST_CASE("what is no memory of the kernel's is left out") {
  const std::string text =
      draft_of(
          "__global__ void attend(const float* q) {}\n"
          "void attention(const float* q, const float* k, const float* v, float* o, float*, "
          "int B, int H, int S, int D, TimerManager* tm) { attend<<<1, 32>>>(q); }\n")
          .text;
  CHECK_THAT(text, contains("nullptr /* tm? */") && contains(", nullptr, c.batch()"));
  CHECK_THAT(text, !contains("DeviceBuffer"));
}

TEST_CASE("room in a tensor is a tensor") {
  const std::string text =
      draft_of(
          "__global__ void attend(const float* q) {}\n"
          "void attention(torch::Tensor q, torch::Tensor k, torch::Tensor v, torch::Tensor o, "
          "torch::Tensor partial_o, int num_splits) { attend<<<1, 32>>>(q.data_ptr<float>()); }\n")
          .text;
  CHECK_THAT(text, contains("torch::empty({static_cast<std::int64_t>(padded_rows * ") &&
                       contains("const std::size_t padded_rows"));
}

TEST_CASE("what stands before a call differs where instances do") {
  const std::string text = draft_of(
                               "template <class T> __global__ void attend(const T* q) {}\n"
                               "template <class T> void attention(const T* q, const T* k, const T* "
                               "v, T* o, T* partial_o, int B, int H, int S, "
                               "int D, int num_splits) { attend<T><<<1, 32>>>(q); }\n"
                               "template void attention<half>(const half*, const half*, const "
                               "half*, half*, half*, int, int, int, int, int);\n"
                               "template void attention<float>(const float*, const float*, const "
                               "float*, float*, float*, int, int, int, int, "
                               "int);\n")
                               .text;
  CHECK_THAT(text, contains("DeviceBuffer<half> partial_o_buffer") &&
                       contains("DeviceBuffer<float> partial_o_buffer"));
}

TEST_CASE("queries that are the last of the keys are masked from the bottom right") {
  const std::string parameters = kTensors + "int B, int H, int q_len, int kv_len, int D";
  const std::string kernel = "int last = kv_len - q_len + i;";
  const Draft always = draft_of(source(parameters, "// causal, the last queries", kernel));
  CHECK_THAT(always.text, contains(".masks = causal_bottom_right"));
  CHECK_THAT(always.run_flags, contains("--mask causal:bottom_right"));
  CHECK_THAT(draft_of(source(parameters + ", bool causal", "", kernel)).text,
             contains(".masks = none | causal_bottom_right") && contains("MaskKind::kCausal"));
  CHECK_THAT(draft_of(source(parameters + ", bool causal")).text,
             contains(".masks = none | causal,"));
}

TEST_CASE(
    "a comment that names a causal mask, or a namespace, says that the mask is always causal") {
  const std::string parameters = kTensors + "int B, int H, int S, int D";
  const auto masks_of = [&](const char* comment) {
    return draft_of(source(parameters, comment, "")).text;
  };
  CHECK_THAT(masks_of("// ---- causal mask ----"), contains(".masks = causal,"));
  CHECK_THAT(masks_of("// no causal mask yet"), !contains("causal,"));
  CHECK_THAT(draft_of("namespace mha_causal {\n" + source(parameters) + "\n}\n").text,
             contains(".masks = causal,"));
}

TEST_CASE("the one size that nothing else is goes to the one parameter that nothing is known of") {
  const Draft draft =
      draft_of(source(kTensors + "int zz, int nq, int nk, int nh, int hd, float sx"));
  CHECK_THAT(draft.text, contains("c.o<half>(), c.batch(), c.seqlen_q(), c.seqlen_k(), c.heads(), "
                                  "c.head_dim(), c.scale())"));
  CHECK_THAT(notes(draft, NoteKind::kGuessed), contains("'zz' is the batch size: nothing else is"));
  CHECK_THAT(draft_of(source(kTensors + "int zz, int yy, int nk, int nh, int hd, float eps")).text,
             contains("0 /* zz? */, 0 /* yy? */") && contains("0 /* eps? */"));
}

TEST_CASE("elements are of the type that a flag says") {
  const Draft draft = draft_of(
      "__global__ void attend(const half* q, const __nv_bfloat16* p) {}\n"
      "void attention(const void* q, const void* k, const void* v, void* o, " +
      kSizes + ", bool is_bf16) { attend<<<1, 32>>>((half*)q, (__nv_bfloat16*)q); }\n");
  CHECK_THAT(draft.text, contains("c.head_dim(), c.dtype() == attn_diag::DType::kBf16)"));
}

TEST_CASE("packed K and V, and a group that there is code for") {
  const Draft packed = draft_of(
      "__global__ void attend(const half* q, const half* kv, half* o) {}\n"
      "void attention(const half* q, const half* kv, half* o, int B, int H, int Sq, int Sk, int D) "
      "{ attend<<<1, 32>>>(q, kv, o); }\n");
  CHECK_THAT(packed.text,
             contains("attn_diag::PackedKv<half> kv_packed(c);") && contains(".layouts = bshd"));
  const Draft group =
      draft_of("__global__ void attend(const half* q) {}\nbool attention(" + kTensors + kSizes +
               ", int n_kv_heads) {\n  const int group = H / n_kv_heads;\n  if (group == 4) "
               "attend<<<1, 32>>>(q);\n"
               "  return group == 4;\n}\n");
  CHECK_THAT(group.run_flags, contains("--heads 8 --kv-heads 2"));
  CHECK_THAT(group.text, contains("c.refuse(\"attention() returned false\")"));
}

TEST_CASE("a draft says how much of it is guessed and not known") {
  const auto marked = [](const Draft& draft) {
    const auto count = [&](NoteKind kind) {
      return std::count_if(draft.notes.begin(), draft.notes.end(),
                           [kind](const Note& note) { return note.kind == kind; });
    };
    return fmt::format("ATTN_DIAG_DRAFT({}, {});", count(NoteKind::kGuessed),
                       count(NoteKind::kUnknown));
  };
  const Draft known = draft_of(source(kTensors + kSizes)),
              unknown =
                  draft_of(source(kTensors + kSizes + ", const int* splines, int frobnicate"));
  CHECK_THAT(known.text, contains(marked(known)) && contains("kernels/draft.h"));
  CHECK_THAT(unknown.text, contains(marked(unknown)) && contains(", 2);"));
}

TEST_CASE("scores that a function scales or masks itself are given before that") {
  const auto of = [](const std::string& numbers) {
    return draft_of(
        "__global__ void pv(const float* scores, const float* v, float* o) {}\nvoid "
        "attention(const float* "
        "scores, const float* v, float* o, " +
        kSizes + numbers + ") { pv<<<1, 32>>>(scores, v, o); }\n");
  };
  CHECK_THAT(of(", float scale, bool causal").text,
             contains(".part = Part::kFromRawScores") && contains("c.scale(), c.is_causal())"));
  const Draft masks = of(", bool causal");
  CHECK_THAT(masks.text, contains(".part = Part::kFromRawScores") && contains("c.scale() != 1.0f"));
  CHECK_THAT(masks.run_flags, contains("--softmax-scale 1"));
  CHECK_THAT(of("").text, contains(".part = Part::kFromScores"));
}

}  // namespace attn_diag::adapt
