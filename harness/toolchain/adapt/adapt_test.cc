// What is read from signatures, launches and constants, one style of code a test. That drafts build and
// run is tried by tools/attn_diag/adapt_cli_test.py.
#include "harness/toolchain/adapt/adapt.h"

#include <algorithm>
#include <fstream>

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag::adapt {
namespace {

Draft draft_of(const std::string& text, const std::string& function = "") {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "mine.cu";
  std::ofstream(file) << text;
  return draft_adapter({file, function, directory.path(), std::nullopt});
}

// "guessed: ..." of every note of a kind, a line each.
std::string notes(const Draft& draft, NoteKind kind) {
  std::string text;
  for (const Note& note : draft.notes)
    if (note.kind == kind) text += note.text + "\n";
  return text;
}

// A kernel and a function of these parameters that launches it.
std::string launcher(const std::string& parameters, const std::string& body = "") {
  return "__global__ void kernel(const float* q) { }\n"
         "void attention(" +
         parameters + ") {\n" + body + "\n  kernel<<<1, 32>>>(nullptr);\n}\n";
}

const std::string kTensors = "const half* q, const half* k, const half* v, half* o, ";

}  // namespace

TEST_CASE("sizes are known by many names") {
  for (const char* sizes :
       {"int B, int H, int S, int D", "int batch_size, int num_heads, int seq_len, int head_dim",
        "int bs, int nh, int N, int d", "int bsz, int n_heads, int seqlen, int hd",
        "int nBatch, int nHeads, int seqLen, int headDim",
        "int batch, int query_heads, int sequence_length, int head_dim"}) {
    INFO(sizes);
    CHECK_THAT(
        draft_of(launcher(kTensors + sizes)).text,
        contains(
            "attention(c.q<half>(), c.k<half>(), c.v<half>(), c.o<half>(), c.batch(), c.heads(), "
            "c.seqlen(), c.head_dim())"));
  }
}

TEST_CASE("tensors of bytes are of the type that the file has elsewhere") {
  const std::string parameters =
      "std::byte* out, const std::byte* q, const std::byte* k, const std::byte* v, int batch, "
      "int heads, int seqlen, int head_dim";
  const auto text = [&](const std::string& before) {
    return before + "__global__ void kernel(const std::byte* q) { }\nvoid attention(" + parameters +
           ") {\n  kernel<<<1, 32>>>(q);\n}\n";
  };
  const Draft draft = draft_of(text("using bf16 = __nv_bfloat16;\n"));
  CHECK_THAT(draft.text, contains("static_cast<std::byte*>(c.o())") && contains(".dtypes = bf16"));
  CHECK_THAT(notes(draft, NoteKind::kGuessed), contains("element type bf16, as the file has"));
  CHECK_THAT(draft_of(text("")).text, contains(".dtypes = fp32"));
}

TEST_CASE("tiles and heads are known by words that are written out") {
  const std::string text =
      draft_of("#define QUERY_BLOCK_SIZE 16\n#define KEY_TILE_SIZE 32\n" +
               launcher(kTensors + "int batch, int query_heads, int key_value_heads, int "
                                   "sequence_length, int head_dim"))
          .text;
  CHECK_THAT(text, contains("c.heads(), c.kv_heads(), c.seqlen()"));
  CHECK_THAT(text, contains(".tile = {16, 32}"));
}

TEST_CASE("tensors are known by many names") {
  for (const char* tensors :
       {"float* d_Q, float* d_K, float* d_V, float* d_O",
        "const float* Qptr, const float* Kptr, const float* Vptr, float* Optr",
        "float* query, float* key, float* value, float* output",
        "const float* __restrict__ gQ, const float* __restrict__ gK, const float* __restrict__ gV, "
        "float* __restrict__ attn_out",
        "const float *RESTRICT Q, const float *RESTRICT K, const float *RESTRICT V, float "
        "*RESTRICT O",
        "const float* A, const float* B, const float* C, float* Y"}) {
    INFO(tensors);
    CHECK_THAT(draft_of(launcher(std::string(tensors) + ", int bh, int n, int d")).text,
               contains("attention(c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(), "
                        "c.batch() * c.heads(), "
                        "c.seqlen(), c.head_dim())"));
  }
}

TEST_CASE("tensors that only their order tells are guessed aloud") {
  const Draft draft = draft_of(
      launcher("const float* A, const float* B, const float* C, float* Y, int bh, int n, int d"));
  CHECK_THAT(notes(draft, NoteKind::kGuessed),
             contains("'A' is Q: taken for Q by its place alone"));
  CHECK_THAT(draft.text, contains("// Guessed: 'C' is V: taken for V by its place alone."));
}

TEST_CASE("dQ is device memory where there is no Q beside it, and that is said") {
  const Draft draft =
      draft_of(launcher("float* dQ, float* dK, float* dV, float* dO, int bh, int n, int d"));
  CHECK_THAT(draft.text,
             contains("attention(c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>()"));
  CHECK_THAT(notes(draft, NoteKind::kGuessed),
             contains("taken for device memory, not for a gradient"));
}

TEST_CASE("a backward pass is not drafted for, and the error says what was looked at") {
  const std::string source = launcher(
      "float* Q, float* K, float* V, float* O, float* dO, float* dQ, float* dK, float* dV, int n, "
      "int d");
  CHECK_THROWS_WITH(draft_of(source), contains("line 2: attention(): it is a backward pass") &&
                                          contains("--function"));
}

TEST_CASE("of M and N, M is queries and N keys") {
  CHECK_THAT(draft_of(launcher(kTensors + "int B, int H, int M, int N, int D")).text,
             contains("c.heads(), c.seqlen_q(), c.seqlen_k(), c.head_dim()"));
}

TEST_CASE("N beside another length is the batch, and that is said") {
  const Draft draft = draft_of(launcher(kTensors + "int N, int H, int L, int E"));
  CHECK_THAT(draft.text, contains("c.batch(), c.heads(), c.seqlen(), c.head_dim()"));
  CHECK_THAT(notes(draft, NoteKind::kGuessed),
             contains("'N' is the batch size: the batch size, as another"));
}

TEST_CASE("an enumeration that is not known is passed as one") {
  const Draft draft = draft_of(launcher(kTensors + "int B, int H, int S, int D, zork_mode_t zork"));
  CHECK_THAT(draft.text, contains("zork_mode_t{} /* zork? */"));
}

TEST_CASE("what is not known stands as a comment and is said") {
  const Draft draft = draft_of(launcher(
      kTensors + "int B, int H, int S, int D, int frobnicate, float* zork, const int* splines"));
  CHECK_THAT(draft.text,
             contains("0 /* frobnicate? */, zork_buffer.data(), nullptr /* splines? */"));
  CHECK_THAT(notes(draft, NoteKind::kUnknown), contains("what to pass for 'int frobnicate'"));
  CHECK_THAT(draft.text, contains("// Not known: what to pass for 'int frobnicate'"));
}

TEST_CASE("an enumeration that is not known gets its own type, not a structure") {
  const Draft draft = draft_of("enum class MaskType { kNone, kCausal };\n" +
                               launcher(kTensors + "int B, int H, int S, int D, MaskType type"));
  CHECK_THAT(draft.text, contains("c.head_dim(), MaskType{} /* type? */);"));
}

TEST_CASE("a mask tensor may be absent, dropout is none, trailing defaults stay") {
  const Draft draft = draft_of(
      launcher(kTensors +
               "int B, int H, int S, int D, const float* attn_mask, float p_dropout, int foo = 3"));
  CHECK_THAT(draft.text, contains("c.head_dim(), nullptr, 0.0f);"));
}

TEST_CASE("several launchers: the choice is said, and can be made") {
  const std::string two = launcher(kTensors + "int B, int H, int S, int D") + "void flash_v2(" +
                          kTensors +
                          "int B, int H, int S, int D) { kernel<<<1, 32>>>(nullptr); }\n";
  const Draft first = draft_of(two);
  CHECK_THAT(notes(first, NoteKind::kGuessed),
             contains("is meant; ") && contains("would do too: --function chooses"));
  CHECK_THAT(draft_of(two, "flash_v2").text, contains("  flash_v2(c.q<half>()"));
  CHECK_THAT(draft_of(two, "attention").text, contains("  attention(c.q<half>()"));
  CHECK_THROWS_WITH(draft_of(two, "flash_v3"),
                    contains("has no function flash_v3()") && contains("would do"));
}

TEST_CASE("head dims come from a switch, an assertion's multiple from a remainder") {
  const Draft draft = draft_of(launcher(kTensors + "int B, int H, int S, int head_dim",
                                        "assert(S % 64 == 0);\n switch (head_dim) { case 64: "
                                        "break; case 128: break; default: abort(); }"));
  CHECK_THAT(draft.text, contains(".head_dims = {64, 128}") &&
                             contains(".seqlen_q_multiple_of = 64") &&
                             contains(".seqlen_k_multiple_of = 64"));
}

TEST_CASE("a multiple is what is refused otherwise, not what a branch chooses by") {
  const auto draft = [](const char* body) {
    return draft_of(launcher(kTensors + "int B, int H, int S, int head_dim", body)).text;
  };
  CHECK_THAT(draft("if (S % 64 != 0) return;"), contains(".seqlen_q_multiple_of = 64"));
  CHECK_THAT(draft("if (head_dim > 128 || S % 64 != 0) { throw 1; }"),
             contains(".seqlen_q_multiple_of = 64"));
  CHECK_THAT(draft("if (S % 64 == 0 && head_dim == 64) B = 1; else B = 2;"),
             !contains(".seqlen_q_multiple_of"));
}

TEST_CASE("sums in 16 bits are to be looked at first") {
  const auto notes = [](const char* body) {
    std::string all;
    for (const Note& note :
         draft_of(launcher(kTensors + "int B, int H, int S, int head_dim", body)).notes)
      if (note.kind == NoteKind::kCheck) all += note.text + '\n';
    return all;
  };
  CHECK_THAT(notes("o[0] = __hfma(q[0], k[0], o[0]);"), contains("sums in 16 bits"));
  CHECK_THAT(notes("o[0] = q[0];"), !contains("sums in 16 bits"));
}

TEST_CASE("constants give tiles, aliases give types, tensor cores and exp2 are seen") {
  const Draft draft = draft_of(R"(
#include <mma.h>
using Element = __half;
#define BLOCK_M 32
constexpr int kWarps = 4, BLOCK_N = 8 * kWarps;
__global__ void kernel(const Element* q, const Element* k, const Element* v, Element* o, float* lse, int seqlen, float scale) {
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> s;
  float p = exp2f(scale);
  lse[0] = p + log2f(p);
}
void fwd(const Element* q, const Element* k, const Element* v, Element* o, float* lse, int batch, int heads, int seqlen, int head_dim, float scale) {
  kernel<<<batch * heads, kWarps * 32>>>(q, k, v, o, lse, seqlen, scale);
})");
  CHECK_THAT(draft.text, contains(".dtypes = fp16") && contains(".tile = {32, 32}") &&
                             contains(".tensor_cores = true") &&
                             contains(".p_in_input_type = true") && contains(".exp2 = true") &&
                             contains(".lse = Lse::kBase2"));
  CHECK_THAT(notes(draft, NoteKind::kGuessed), contains("the log-sum-exp is in base 2"));
}

TEST_CASE("the launches of main are repeated with its variables by their names") {
  const Draft draft = draft_of(R"(
__global__ void flash(const float* Q, const float* K, const float* V, float* O, int N, int d, int Bc, float scale) {}
int main() {
  const int B = 2, nh = 4, N = 128;
  const int d = 64;
  const int Bc = 16;
  const int sram = 3 * Bc * d * sizeof(float);
  float *d_Q, *d_K, *d_V, *d_O;
  dim3 grid(B, nh);
  flash<<<grid, Bc, sram>>>(d_Q, d_K, d_V, d_O, N, d, Bc, 1.0f / sqrt(d));
  for (int i = 0; i < 10; ++i) flash<<<grid, Bc, sram>>>(d_Q, d_K, d_V, d_O, N, d, Bc, 1.0f / sqrt(d));
})");
  CHECK_THAT(draft.text, contains("const int B = c.batch();") &&
                             contains("const int nh = c.heads();") &&
                             contains("dim3 grid(B, nh);") &&
                             contains("const int sram = 3 * Bc * d * sizeof(float);"));
  const std::string call =
      "flash<<<grid, Bc, sram, c.stream()>>>(c.q<float>(), c.k<float>(), c.v<float>(), "
      "c.o<float>(), "
      "c.seqlen(), c.head_dim(), c.tile().block_n, c.scale());";
  CHECK_THAT(draft.text, contains(call));
  CHECK(draft.text.find(call) == draft.text.rfind(call));  // repeated for timing there, once here
}

TEST_CASE("launches of a function in a namespace know the names of that") {
  const Draft draft = draft_of(R"(
namespace nn::attention {
constexpr int kThreads = 64;
__global__ void flash(const float* Q, const float* K, const float* V, float* O, int N, int d) {}
void run() {
  const int B = 2, nh = 4, N = 128, d = 64;
  float *d_Q, *d_K, *d_V, *d_O;
  flash<<<dim3(B, nh), kThreads>>>(d_Q, d_K, d_V, d_O, N, d);
}
})");
  CHECK_THAT(draft.text, contains("  using namespace nn::attention;\n") &&
                             contains("flash<<<dim3(B, nh), kThreads, 0, c.stream()>>>("));
}

TEST_CASE("a bare kernel's grid follows the names that blockIdx is given") {
  const Draft draft = draft_of(R"(
#define Br 16
__global__ void __launch_bounds__(128) attn(const half* Q, const half* K, const half* V, half* O, int H, int S, int D) {
  int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  int row = q_tile * Br;
})");
  CHECK_THAT(draft.text,
             contains("const dim3 grid((c.seqlen_q() + 16 - 1) / 16, c.heads(), c.batch());") &&
                 contains("const dim3 block(128);") &&
                 contains("attn<<<grid, block, 0, c.stream()>>>"));
  CHECK_THAT(notes(draft, NoteKind::kGuessed), contains("__launch_bounds__ says 128"));
  CHECK_THAT(notes(draft, NoteKind::kCheck), contains("the launch shape"));
}

TEST_CASE("cudaLaunchKernel, strings with <<<, comments and #if 0 are understood") {
  const Draft draft = draft_of(R"x(
// void fake(const half* q, const half* k, const half* v, half* o) { fake_kernel<<<1, 1>>>(q); }
#if 0
void dead(const half* q, const half* k, const half* v, half* o) { dead_kernel<<<1, 1>>>(q); } }}}
#endif
const char* text = "kernel<<<1, 2>>>(q)";
__global__ void kernel(const half* q, const half* k, const half* v, half* o, int n, int d) {}
void run(const half* q, const half* k, const half* v, half* o, int b, int h, int n, int d) {
  void* args[] = {&q, &k, &v, &o, &n, &d};
  cudaLaunchKernel((void*)kernel, dim3(b * h), dim3(32), args, 0, nullptr);
})x");
  CHECK_THAT(draft.text, contains("  run(c.q<half>()"));
  CHECK(draft.candidates.size() == 2);
}

TEST_CASE("braces that do not match are an error with their place") {
  CHECK_THROWS_WITH(draft_of("void f() { if (x) { \n"),
                    contains("mine.cu:1:") && contains("without preprocessing"));
}

TEST_CASE("headers that are not beside the source are said, those that are are read") {
  const Draft draft =
      draft_of("#include \"far_away.h\"\n" + launcher(kTensors + "int B, int H, int S, int D"));
  CHECK_THAT(notes(draft, NoteKind::kUnknown), contains("what \"far_away.h\" holds"));
}

TEST_CASE("a kernel of one head is called for every head, and that is said") {
  const Draft draft =
      draft_of(launcher("const float* Q, const float* K, const float* V, float* O, int N, int d"));
  CHECK_THAT(draft.text, contains("for (int head = 0; head < c.batch() * c.heads(); ++head) {") &&
                             contains("c.k<float>() + head * c.seqlen_k() * c.head_dim()"));
  CHECK_THAT(notes(draft, NoteKind::kGuessed), contains("it is called once for every head"));
}

TEST_CASE(
    "the layout is said by a comment, by index expressions, or by the order of the parameters") {
  const auto layout = [](const std::string& text) {
    const Draft draft = draft_of(text);
    return (draft.text.find("layouts = bshd") != std::string::npos ? "bshd" : "bhsd") +
           notes(draft, NoteKind::kGuessed);
  };
  const std::string heads_first = kTensors + "int B, int H, int N, int d";
  const std::string rows_first = kTensors + "int B, int N, int H, int d";
  CHECK_THAT(layout(launcher(heads_first)), contains("bhsd") && contains("by the order of the"));
  CHECK_THAT(layout(launcher(rows_first)), contains("bshd") && contains("by the order of the"));
  CHECK_THAT(layout("// q, k, v: [B, H, N, d]\n" + launcher(rows_first)),
             contains("bhsd") && contains("as a comment says"));
  CHECK_THAT(layout("/* (batch, seqlen, heads, dim) */\n" + launcher(heads_first)),
             contains("bshd") && contains("as a comment says"));
  // An argument list is no comment, and scores or both layouts in comments say nothing.
  CHECK_THAT(layout("// S [B, H, N, N]; BSHD or BHSD\n" + launcher(rows_first, "f(B, H, N, d);")),
             contains("bshd") && contains("by the order of the"));
  // The log-sum-exp has one order only.
  CHECK_THAT(layout(launcher(rows_first + ", float* lse", "lse[(b * H + h) * N + i] = 0;")),
             contains("bshd") && contains("by the order of the"));
  CHECK_THAT(layout(launcher(rows_first, "o[(b * H + h) * N + i] = 0;")),
             contains("bhsd") && contains("1 of 1 index"));
}

TEST_CASE(
    "a loop over keys that ends at a query is a causal mask; one that ends elsewhere is not") {
  const auto kernel = [](const std::string& guard, const std::string& end) {
    return draft_of("__global__ void attend(" + kTensors +
                    "int N, int d) {\n  const int i = blockIdx.x;\n" + guard +
                    "  for (int j = 0; j <= " + end + "; ++j) { }\n}\n")
        .text;
  };
  CHECK_THAT(kernel("  if (i >= N) return;\n", "i"), contains(".masks = causal"));
  CHECK_THAT(kernel("", "i"), contains(".masks = none"));
  CHECK_THAT(kernel("  if (i >= N) return;\n", "last"), contains(".masks = none"));
}

TEST_CASE("a kernel that is launched through a pointer is read too") {
  const std::string source =
      "template <bool C> __global__ void attend(const half* q) { wmma::mma_sync(a, b); }\n"
      "void attention(" +
      kTensors +
      "int N, bool causal) {\n"
      "  auto* kernel = causal ? &attend<true> : &attend<false>;\n"
      "  kernel<<<1, 32>>>(q);\n}\n";
  CHECK_THAT(draft_of(source).text, contains(".tensor_cores = true"));
}

TEST_CASE("a workspace has room in bytes of numbers, and its size stands under what is not known") {
  const Draft bytes = draft_of(launcher(kTensors + "char* workspace, int N, int num_splits"));
  CHECK_THAT(bytes.text,
             contains("DeviceBuffer<char> workspace_buffer(sizeof(float) * (padded_rows * "));
  CHECK_THAT(notes(bytes, NoteKind::kUnknown), contains("how large 'workspace' must be"));
  const Draft unknown = draft_of(launcher(kTensors + "int N, uint8_t* stuff, int* tickets"));
  CHECK_THAT(unknown.text, contains("stuff_buffer(sizeof(float) * (padded_rows") &&
                               contains("tickets_buffer.fill(0);"));
  CHECK_THAT(notes(unknown, NoteKind::kUnknown), contains("what 'tickets' is and how large it"));
  const Draft floats = draft_of(launcher(kTensors + "float* workspace, int N"));
  CHECK_THAT(floats.text, contains("DeviceBuffer<float> workspace_buffer((padded_rows * "));
}

TEST_CASE("codes are declared with what has a scale of its own, as comments or indices say") {
  const auto of = [](const std::string& type, const std::string& parameters,
                     const std::string& index, const std::string& comment = "") {
    return draft_of(comment + "__global__ void attend(const half* q, const " + type +
                    "* k, const half* v, half* o, " + parameters +
                    ", int H, int S) {\n  const int h = blockIdx.y % H, b = blockIdx.y / H, bh = "
                    "blockIdx.y;\n  const int kv = h / group_size, j = 0;\n  x = " +
                    index + ";\n}\nvoid attention(const half* q, const " + type +
                    "* k, const half* v, half* o, " + parameters +
                    ", int B, int H, int S, int D) { attend<<<1, 1>>>(q, k, v, o); }\n");
  };
  const std::string scales = "const float* k_scale";
  for (const auto& [index, per] :
       {std::pair{"k_scale[0]", "kTensor"}, std::pair{"*k_scale", "kTensor"},
        std::pair{"k_scale[h]", "kHead"}, std::pair{"k_scale[kv]", "kHead"},
        std::pair{"k_scale[bh]", "kBatchHead"}, std::pair{"k_scale[b * H + h]", "kBatchHead"},
        std::pair{"k_scale[bh * S + j]", "kToken"}, std::pair{"(k_scale + bh * S)[j]", "kToken"}}) {
    CAPTURE(index);
    const Draft draft = of("int8_t", scales, index);
    CHECK_THAT(draft.text, contains(std::string("{CodeType::kInt8, ScalePer::") + per + "}"));
    CHECK_THAT(draft.text, contains("k_coded.scales<float>()") && contains("coded_inputs.h"));
    CHECK_THAT(notes(draft, NoteKind::kCheck), contains("only the kernel's own index"));
  }
  const Draft said = of("int8_t", scales, "k_scale[h]", "// k_scale: [B, H]\n");
  CHECK_THAT(said.text, contains("ScalePer::kBatchHead"));
  CHECK_THAT(of("int8_t", scales, "k_scale[h]", "// quantised per token\n").text,
             contains("ScalePer::kToken"));
  CHECK_THAT(notes(of("int8_t", scales, "0"), NoteKind::kUnknown),
             contains("what of K has a scale of its own"));
  CHECK_THAT(of("__nv_fp8_e5m2", "float k_descale", "0").text,
             contains("{CodeType::kE5m2, ScalePer::kTensor}") && contains("k_coded.scale()"));
  CHECK_THAT(
      of("uint8_t", "const half* kScales, const half* kZeros", "kScales[h] + kZeros[h]").text,
      contains("k_coded.zeros<half>()") && contains("CodeType::kUint8"));
  CHECK_THAT(of("uint8_t", scales, "k_scale[0] * __nv_cvt_fp8_to_halfraw(k[0], __NV_E4M3)").text,
             contains("CodeType::kE4m3"));
  CHECK_THROWS_WITH(of("uint8_t", scales, "0"), contains("no parameter is its zero"));
  CHECK_THROWS_WITH(of("int8_t", "float softmax_scale", "0"),
                    contains("no parameter is its scale"));
  CHECK_THROWS_WITH(of("int8_t", "const float* kv_scale", "0"), contains("share their scales"));
}

TEST_CASE("what a launcher returns is looked at") {
  const auto with_result = [](const std::string& type) {
    std::string text = launcher(kTensors + "int N");
    text.replace(text.find("void attention"), 4, type);
    return draft_of(text).text;
  };
  CHECK_THAT(with_result("bool"), contains("if (!attention(") && contains("returned false"));
  CHECK_THAT(with_result("cudaError_t"), contains("const cudaError_t error = attention(") &&
                                             contains("cudaGetErrorString(error)"));
  CHECK_THAT(with_result("int"), contains("\n    attention("));
}

TEST_CASE("a length that is a template argument or a constant of the kernel is declared") {
  const Draft by_template = draft_of(
      "template <int S, int D> __global__ void k(const half* q, const half* k, const half* v, "
      "half* "
      "o) {}\nvoid attention(const half* q, const half* k, const half* v, half* o, int bh) { "
      "k<512, "
      "64><<<bh, 32>>>(q, k, v, o); }\n");
  CHECK_THAT(by_template.text, contains(".head_dims = {64}") && contains(".max_seqlen_k = 512") &&
                                   contains(".seqlen_q_multiple_of = 512"));
  CHECK(by_template.run_flags == " --seqlen 512 --batch 2");
  const Draft by_macro = draft_of(
      "#define N 256\n#define H 8\n__global__ void k(const half* q, const half* k, const half* v, "
      "half* o) { int i = N * H; }\nvoid attention(const half* q, const half* k, const half* v, "
      "half* o, int batch, int d) { k<<<1, 32>>>(q, k, v, o); }\n");
  CHECK_THAT(by_macro.text, contains(".max_seqlen_k = 256") &&
                                contains("if (c.heads() != 8)\n    c.refuse(\"the number of heads "
                                         "is fixed in the source: 8\");"));
  // Where the length is a parameter, a constant of that name is something else.
  CHECK(draft_of("constexpr int kSeq = 256;\n" +
                 launcher(kTensors + "int B, int H, int seqlen, int d", "int x = kSeq;"))
            .text.find("max_seqlen_k") == std::string::npos);
}

TEST_CASE(
    "heads without batches are called for each batch, batches without heads are those of all") {
  const Draft heads = draft_of(launcher(kTensors + "int H, int N, int d"));
  CHECK_THAT(heads.text,
             contains("for (int one_batch = 0; one_batch < c.batch(); ++one_batch) {") &&
                 contains("c.k<half>() + one_batch * c.k_strides().batch"));
  const Draft batches = draft_of(launcher(kTensors + "int B, int N, int d"));
  CHECK_THAT(batches.text, contains("c.o<half>(), c.batch() * c.heads(), c.seqlen()"));
  CHECK_THAT(draft_of(launcher(kTensors + "int B, int H, int N, int d")).text,
             contains("c.o<half>(), c.batch(), c.heads(), c.seqlen()"));
}

TEST_CASE("the conditions around a launch are kept where they are of the problem") {
  const Draft draft = draft_of(R"(
template <bool C> __global__ void k(const float* Q, const float* K, const float* V, float* O, int n) {}
void bench(int batch, int heads, int n, bool causal, int argc) {
  float *q, *k_, *v, *o;
  dim3 grid(n, batch * heads);
  if (argc > 1) {
    if (causal) k<true><<<grid, 32>>>(q, k_, v, o, n);
    else k<false><<<grid, 32>>>(q, k_, v, o, n);
  }
})");
  CHECK_THAT(draft.text, contains("if (causal) k<true><<<grid, 32, 0, c.stream()>>>") &&
                             contains("if (!(causal)) k<false><<<grid, 32, 0, c.stream()>>>") &&
                             contains("const bool causal = c.is_causal();"));
  CHECK(draft.text.find("argc") == std::string::npos);
}

TEST_CASE("scales of tensors are 1, the softmax scale may come by a pointer") {
  CHECK_THAT(draft_of(launcher(kTensors + "int B, int H, int N, int d, const float* k_scale, const "
                                          "float* v_scale, const float* softmax_scale"))
                 .text,
             contains("k_scale_buffer.fill(1.0f);") && contains("v_scale_buffer.fill(1.0f);") &&
                 contains("softmax_scale_buffer.fill(c.scale());"));
}

TEST_CASE("comments name axes in many ways, and decide the layout against the kernel's indices") {
  const std::string kernel =
      "__global__ void kernel(const float* q, const float* k, const float* v, float* o, int S, int "
      "H, "
      "int D) {\n  o[((blockIdx.z * H + blockIdx.y) * S + blockIdx.x) * D] = "
      "q[((blockIdx.z * H + blockIdx.y) * S + blockIdx.x) * D];\n}\n"
      "void attention(const float* q, const float* k, const float* v, float* o, int B, int H, int "
      "S, "
      "int D) {\n  kernel<<<1, 1>>>(q, k, v, o, S, H, D);\n}\n";
  CHECK_THAT(draft_of(kernel).text, !contains(".layouts"));
  for (const char* comment :
       {"// [B, S, H, D]", "// q[batch][seq][head][dim]",
        "// (batch size, seq len, num heads, head dim)",
        "// [batch, seq_len, NUM_HEADS * HEAD_SIZE]", "// N x d_model, heads side by side",
        "// B x S x H x D", "// (B, T, 3C)", "// [total_tokens, num_heads, head_dim]",
        "// q[((b * S + s) * H + h) * D + d]", "/* qkv: [batch, seqlen, 3, nheads, headdim] */",
        "// BSND", "// [seq, batch, heads, dim]",
        "void f() { TORCH_CHECK(true, \"(batch, seq, heads, dim)\"); }"}) {
    INFO(comment);
    CHECK_THAT(draft_of(std::string(comment) + "\n" + kernel).text, contains(".layouts = bshd"));
  }
  for (const char* comment : {"// [B*H, S, D]", "// (bh, seq, 64)", "// B x H x N x d", "// BNSD",
                              "// [batch][head][token][dim]"}) {
    INFO(comment);
    CHECK_THAT(draft_of(std::string(comment) + "\n" + kernel).text, !contains(".layouts"));
    CHECK_THAT(draft_of(std::string(comment) + "\n" + kernel).text, contains("as a comment says"));
  }
  // Batches side by side within a row are one batch's layout alone.
  CHECK_THAT(draft_of("// [seq, batch, heads, dim]\n" + kernel).text, contains("c.batch() != 1"));
}

TEST_CASE("a window of one width is what the kernel compares it with") {
  for (const auto& [code, words] : {std::pair{"j = i - window + 1", "c.window_left() + 1"},
                                    {"if (i - j >= window) continue", "c.window_left() + 1"},
                                    {"keep = j > i - window", "c.window_left() + 1"},
                                    {"j = max(0, i - window)", "c.window_left())"},
                                    {"keep = i - j <= window", "c.window_left())"},
                                    {"if (j < i - window) continue", "c.window_left())"}}) {
    INFO(code);
    const Draft draft = draft_of(
        "__global__ void kernel(const half* q, const half* k, const half* v, half* o, int window) "
        "{\n  " +
        std::string(code) + ";\n}\nvoid attention(" + kTensors +
        "int B, int H, int S, int D, int window) {\n  kernel<<<1, 1>>>(q, k, v, o, window);\n}\n");
    CHECK_THAT(draft.text, contains(words) && contains(".masks = window"));
    CHECK_THAT(draft.text, contains("if (c.window_right() != 0)"));
    CHECK_THAT(draft.run_flags, contains("--mask window:20,0"));
  }
}

TEST_CASE("a log-sum-exp is known by what is stored, not in parts of splits") {
  const auto text = [](const std::string& more, const std::string& name) {
    return draft_of(
               "__global__ void kernel(const half* q, const half* k, const half* v, half* o, "
               "float* " +
               name + ", int n) {\n  " + more + "\n  " + name +
               "[blockIdx.x] = m + logf(l);\n}\n"
               "void attention(const half* q, const half* k, const half* v, half* o, float* " +
               name +
               ", int B, int H, int n, int D, void* stream) {\n  kernel<<<1, 1, 0, "
               "(cudaStream_t)stream>>>(q, k, v, o, " +
               name + ", n);\n}\n")
        .text;
  };
  CHECK_THAT(text("float m = 0, l = 1;", "L"), contains("c.o<half>(), c.lse(), c.batch()"));
  CHECK_THAT(text("float m = 0, l = 1;", "M"), contains("c.o<half>(), c.lse(), c.batch()"));
  CHECK_THAT(text("float m = 0, l = 1;", "M"), contains("c.head_dim(), c.stream())"));
  CHECK_THAT(text("int split = 0; float m = 0, l = 1;", "M"), !contains("c.lse()"));
}

TEST_CASE("a source that has an adapter is refused with its line") {
  CHECK_THROWS_WITH(draft_of(launcher(kTensors + "int N") + "ATTN_DIAG_EXPORT({.name = x});\n"),
                    contains("has an adapter already, in line "));
}

TEST_CASE("the flags of the first run ask for a problem that is declared") {
  CHECK(draft_of(launcher(kTensors + "int B, int H, int N")).run_flags == " --batch 2");
  CHECK(draft_of("// float, BSHD\nconstexpr int kHeadDim = 32;\n" +
                 launcher("const float* q, const float* k, const float* v, float* o, int N"))
            .run_flags == " --dtype fp32 --head-dim 32 --batch 2 --layout BSHD");
}

TEST_CASE("members of a class and sources without attention are refused with what they are") {
  CHECK_THROWS_WITH(draft_of("struct A { void run(float* q, float* k, float* v, float* o) { "
                             "kernel<<<1, 1>>>(q); } };"),
                    contains("it is a member of a class"));
  CHECK_THROWS_WITH(draft_of("int main() { return 0; }"),
                    contains("No function of it is a kernel or launches one"));
  CHECK_THROWS_WITH(draft_of(launcher("float* a, float* b, int n")),
                    contains("do not name K, V, the output") && contains("name no Q"));
}

}  // namespace attn_diag::adapt
