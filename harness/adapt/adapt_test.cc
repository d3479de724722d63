// What is read from signatures, launches and constants, one style of code a test. That drafts build and
// run is tried by tools/attn_diag/adapt_cli_test.py.
#include "harness/adapt/adapt.h"

#include <algorithm>
#include <fstream>

#include "attn_diag/harness/error.h"
#include "harness/catch_for_tests.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag::adapt {
namespace {

Draft draft_of(const std::string& text, const std::string& function = "") {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "mine.cu";
  std::ofstream(file) << text;
  return draft_adapter({file, function, directory.path()});
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
        "int nBatch, int nHeads, int seqLen, int headDim"}) {
    INFO(sizes);
    CHECK_THAT(
        draft_of(launcher(kTensors + sizes)).text,
        contains(
            "attention(c.q<half>(), c.k<half>(), c.v<half>(), c.o<half>(), c.batch(), c.heads(), "
            "c.seqlen(), c.head_dim())"));
  }
}

TEST_CASE("tensors are known by many names") {
  for (const char* tensors :
       {"float* d_Q, float* d_K, float* d_V, float* d_O",
        "const float* Qptr, const float* Kptr, const float* Vptr, float* Optr",
        "float* query, float* key, float* value, float* output",
        "const float* __restrict__ gQ, const float* __restrict__ gK, const float* __restrict__ gV, "
        "float* __restrict__ attn_out",
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

TEST_CASE("what is not known stands as a comment and is said") {
  const Draft draft = draft_of(launcher(
      kTensors + "int B, int H, int S, int D, int frobnicate, float* zork, const int* cu_seqlens"));
  CHECK_THAT(draft.text,
             contains("0 /* frobnicate? */, zork_buffer.data(), nullptr /* cu_seqlens? */"));
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
  CHECK_THAT(bytes.text, contains("DeviceBuffer<char> workspace_buffer(sizeof(float) * (rows * "));
  CHECK_THAT(notes(bytes, NoteKind::kUnknown), contains("how large 'workspace' must be"));
  const Draft unknown = draft_of(launcher(kTensors + "int N, uint8_t* stuff, int* tickets"));
  CHECK_THAT(unknown.text,
             contains("stuff_buffer(sizeof(float) * (rows") && contains("tickets_buffer.fill(0);"));
  CHECK_THAT(notes(unknown, NoteKind::kUnknown), contains("what 'tickets' is and how large it"));
  const Draft floats = draft_of(launcher(kTensors + "float* workspace, int N"));
  CHECK_THAT(floats.text, contains("DeviceBuffer<float> workspace_buffer((rows * "));
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

TEST_CASE("a source that has an adapter is refused with its line") {
  CHECK_THROWS_WITH(draft_of(launcher(kTensors + "int N") + "ATTN_DIAG_EXPORT({.name = x});\n"),
                    contains("has an adapter already, in line "));
}

TEST_CASE("the flags of the first run ask for a problem that is declared") {
  CHECK(draft_of(launcher(kTensors + "int B, int H, int N")).run_flags.empty());
  CHECK(draft_of("// float, BSHD\nconstexpr int kHeadDim = 32;\n" +
                 launcher("const float* q, const float* k, const float* v, float* o, int N"))
            .run_flags == " --dtype fp32 --head-dim 32 --layout BSHD");
}

TEST_CASE("members of a class and sources without attention are refused with what they are") {
  CHECK_THROWS_WITH(draft_of("struct A { void run(float* q, float* k, float* v, float* o) { "
                             "kernel<<<1, 1>>>(q); } };"),
                    contains("it is a member of a class"));
  CHECK_THROWS_WITH(draft_of("int main() { return 0; }"),
                    contains("No function of it is a kernel or launches one"));
  CHECK_THROWS_WITH(draft_of(launcher("float* a, float* b, int n")), contains("name no Q"));
}

}  // namespace attn_diag::adapt
