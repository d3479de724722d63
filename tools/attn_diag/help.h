// The texts of --help.
#pragma once

namespace attn_diag::cli {

inline constexpr const char* kRunGroup = "What to run, and how";
inline constexpr const char* kProblemGroup = "The problem (in brackets: the default)";
inline constexpr const char* kOutputGroup = "Output";

inline constexpr const char* kSummary =
    "Finds the stage, query and KV tile at which an attention kernel goes wrong.";
inline constexpr const char* kStageHelp =
    "Run up to this stage: qk, softmax, pv, reduce (default), or full: the production kernel, "
    "without taps";
inline constexpr const char* kTraceStageHelp =
    "Look no further than this stage: qk, softmax, pv, reduce (default), or full: at the "
    "production kernel only";
inline constexpr const char* kDiagnoseStageHelp =
    "Record up to this stage: qk, softmax, pv, reduce (default), or full: o and lse of the "
    "production kernel only";
inline constexpr const char* kIsolateHelp =
    "Feed every stage the reference's inputs, so that each is judged alone";
inline constexpr const char* kThreadsHelp = "CPU threads (all cores)";
inline constexpr const char* kInputsHelp =
    "randn, probe, ... (attn-diag list shows them), or FILE.h5: the q, k and v of a dump (randn)";

// Help of flags that several commands have.
inline constexpr const char* kNoConfigHelp =
    "Take no defaults from attn-diag.toml, here or in a folder above";
inline constexpr const char* kTileHelp = "Query tile x KV tile, as 64x64; else the kernel chooses";
inline constexpr const char* kNumSplitsHelp = "KV partitions of split-K; else the kernel's choice";
inline constexpr const char* kKvHeadsHelp = "KV heads; must divide --heads (as many)";
inline constexpr const char* kSeqlenQHelp = "Queries, where they differ from --seqlen";
inline constexpr const char* kSeqlenKHelp = "Keys, where they differ from --seqlen";
inline constexpr const char* kHeadDimHelp = "Of q and k, 1 to 256 (64)";
inline constexpr const char* kHeadDimVHelp = "Of v and o (as --head-dim)";
inline constexpr const char* kDTypeHelp = "fp16, bf16 or fp32 (fp16, or what the kernel takes)";
inline constexpr const char* kLayoutHelp = "BHSD or BSHD (BHSD)";
inline constexpr const char* kSeedHelp = "Of the inputs (0)";
inline constexpr const char* kInputScaleHelp = "Multiplies the inputs (1)";
inline constexpr const char* kSoftmaxScaleHelp = "1/sqrt(head_dim) if not given";

inline constexpr const char* kMainFooter = R"(
Examples:
  attn-diag list
  attn-diag trace --kernel fa1
  attn-diag trace --kernel split_k@reduce-counts-l-twice --mask causal
  attn-diag run --kernel fa1,split_k --seqlen 4,64,65,128 --dtype fp16,bf16
  attn-diag trace --kernel ./libmine.so:my_kernel --seqlen-q 1 --seqlen-k 4096

Exit codes: 0 agrees; 1 diverges; 2 could not compare (bad usage, bad file, unsupported,
nothing compared, output not written); 3 internal error.

Data goes to stdout, progress and errors to stderr. Colour is used on terminals only; NO_COLOR
turns it off, CLICOLOR_FORCE on. Kernels are looked for in $ATTN_DIAG_KERNEL_PATH (colon
separated), then in ../lib/attn_diag/kernels beside this program.
attn-diag COMMAND --help says more of each command.)";

inline constexpr const char* kInputsSummary =
    "Which known bugs given inputs hide, and which they cannot tell apart";
inline constexpr const char* kInputsFooter = R"(
Nothing is run: each bug of the catalogue (docs/catalogue.md) predicts o and lse of the case, in the tiles and
the arithmetic of the kernel, and predictions are compared within their rounding bounds. Flags take lists.

Examples:
  attn-diag inputs --kernel split_k --inputs randn,probe --mask causal
  attn-diag inputs --kernel ./libmine.so:mine --inputs failing.h5 --json

Exit codes: 0 done; 2 could not be done; 3 internal error.)";

inline constexpr const char* kExplainSummary =
    "What a word means: a stage, a verdict, a finding, a bug, a value";
inline constexpr const char* kExplainFooter = R"(
Examples:
  attn-diag explain reduce
  attn-diag explain missing-fence
  attn-diag explain 2
  attn-diag explain                  lists the words

Exit codes: 0 explained; 2 there is no such word; 3 internal error.)";

inline constexpr const char* kCompletionsSummary = "Completions for bash, zsh and fish; the manual";
inline constexpr const char* kCompletionsFooter = R"(
Made from the same table as --help. An installed attn-diag has them where shells and man look; else:
  source <(attn-diag completions bash)                              in ~/.bashrc
  attn-diag completions zsh > FOLDER/_attn-diag                     FOLDER is one of $fpath
  attn-diag completions fish > ~/.config/fish/completions/attn-diag.fish
  attn-diag completions man > attn-diag.1 && man -l attn-diag.1

Exit codes: 0 written; 2 there is no such form; 3 internal error.)";

inline constexpr const char* kListSummary =
    "Kernels, faults, stages, gates, backends: what can run here";
inline constexpr const char* kListFooter = R"(
Examples:
  attn-diag list
  attn-diag list ./my_kernel.so
  attn-diag list --json | jq '.kernels[].name'

Exit codes: 0, or 2 if no kernel was found.)";

inline constexpr const char* kDoctorSummary =
    "What can run here, found out by trying, and what to do about the rest";
inline constexpr const char* kDoctorFooter = R"(
Runs a small case on every backend; shows toolkit, driver, GPUs, what each kernel library holds code
for, HDF5 and compiler.

Examples:
  attn-diag doctor
  attn-diag doctor --json | jq '.lacks'

Exit codes: 0 if at least backend host works, else 2.)";

inline constexpr const char* kRunSummary = "One run or a matrix of runs: a verdict per stage";
inline constexpr const char* kRunFooter = R"(
Every flag of the problem, --kernel, --tile, --num-splits and --seed take lists separated by commas.
Their combinations make a matrix: one table, one verdict a row, one exit code.

On backend host each case is run twice more, without taps, in other orders of threads and on other
bytes in all memory that the kernel has not written. A result that moves by more than rounding is a
divergence, or LATENT: right as a GPU most likely has it (warps that stay converged, zeros in fresh
memory), and wrong otherwise.

Examples:
  attn-diag run --kernel fa1 --seqlen 65 --mask causal
  attn-diag run --kernel fa1,split_k --seqlen 4,64,65,128,192,256,512 --dtype fp16,bf16
  attn-diag run --kernel fa1 --seqlen-q 3 --seqlen-k 7 --mask causal:bottom_right --stage qk
  attn-diag run --kernel split_k --num-splits 1,2,4 --junit report.xml

Exit codes: the highest of the rows': 0 agrees, 1 diverges, 2 the run failed. A row that a kernel
does not support is shown as "unsupported" and counted, and does not decide, unless a kernel was
left with no row that could be compared: then 2. A latent row is 1. 3 internal error.)";

inline constexpr const char* kDumpSummary = "Run once and store every stage in an HDF5 file";
inline constexpr const char* kDumpFooter = R"(
The file has the schema attn-diag/1 (docs/schema.md), labelled axes, and opens in h5py, xarray and
HDFView. It is written to a temporary name and renamed when complete.

Examples:
  attn-diag dump --kernel split_k --mask causal -o split_k.h5
  attn-diag dump --kernel fa1 --seqlen 4096 --head 0 --query 100:110 -o rows.h5
  attn-diag dump --kernel fa1 --stage qk --isolate --with-reference --deflate 4 -o qk.h5

Exit codes: 0 written; 2 not written (exists, not writable, too large, unsupported); 3 internal
error.)";

inline constexpr const char* kCompareSummary =
    "A dump, or arrays of any program, against the reference; or two dumps";
inline constexpr const char* kCompareFooter = R"(
One file: every tensor in it against the fp64 reference, recomputed from the inputs in it. It is a
dump, or HDF5, .npy, .npz or safetensors of any program (docs/files.md). Two files: the first
against the second; without --atol, --rtol or --bound every value must be the same. Files of
different problems cannot be compared.

Examples:
  attn-diag compare before.h5
  attn-diag compare case.safetensors --mask causal
  attn-diag compare after.h5 before.h5
  attn-diag compare after.h5 before.h5 --atol 1e-3 --rtol 1e-2

Exit codes: 0 agrees; 1 diverges; 2 could not compare; 3 internal error.)";

inline constexpr const char* kTraceSummary =
    "The bug hunt: the first stage that is wrong, exact query and tile";
inline constexpr const char* kTraceFooter = R"(
First runs the production kernel again, in other orders and on other bytes in all memory it has
not written: a result that moves by more than rounding is a race or an uninitialised read, and is
reported first, as LATENT where a GPU most likely has it right today; what follows is looked at
where the result holds still, if it is wrong there too. Then runs the kernel with taps and judges
every stage by its rounding bound; runs each stage alone, fed the reference's inputs; puts the right
output of the first wrong stage in and runs on; and compares the production kernel with the tapped
one.

Examples:
  attn-diag trace --kernel fa1
  attn-diag trace --kernel split_k@reduce-counts-l-twice --mask causal
  attn-diag trace --kernel ./libmine.so:mine --seqlen 1000 --heads 8 --kv-heads 2 --dtype bf16
  attn-diag trace --kernel fa1 --inputs failing.h5 --json
  attn-diag trace --kernel fa1 --mask causal -o fa1.h5 && attn-diag show fa1.h5

Exit codes: 0 agrees; 1 diverges, or latent; 2 could not compare; 3 internal error.)";

inline constexpr const char* kShowSummary =
    "The values of one query around a KV tile, beside the reference";
inline constexpr const char* kShowFooter = R"(
Without --stage, --head, --query or --kv-tile, the first wrong one is shown. The reference is
recomputed for this one row.

Examples:
  attn-diag show x.h5
  attn-diag show x.h5 --stage reduce --head 0 --query 45 --kv-tile 1
  attn-diag show x.h5 --stage softmax --query 7 --cells all

Exit codes: 0 what is shown agrees; 1 it does not; 2 could not show; 3 internal error.)";

inline constexpr const char* kBenchSummary =
    "How long kernels take on a GPU, if their output is right";
inline constexpr const char* kAgainstHelp =
    "Times of PyTorch on the same GPU, as tools/compare_with_pytorch.py writes them";
inline constexpr const char* kBenchFooter = R"(
Without flags: every kernel built for backend cuda, --heads 8, --seqlen 128,512,2048,8192, --mask
none,causal, fp16, head dim 64. Flags of the problem, --kernel, --tile and --num-splits take lists.

A kernel whose o or lse diverges from the reference is not timed. Every row is compared, but of
large problems the first, middle and last rows of each head; the table says how many. The times are
of one call in a CUDA graph of many, on inputs that are not in the L2 cache. Beside the median stand
the least and the quartiles, the ratio to the larger of the two floors (bytes over measured copy
bandwidth, flops over the nominal peak), to the fastest kernel, to fa1 and to PyTorch.

Examples:
  attn-diag bench
  attn-diag bench --kernel split_k --seqlen 512 --num-splits 1,2,4,8
  tools/compare_with_pytorch.py -o torch.json && attn-diag bench --against torch.json

Exit codes: 0 every kernel was timed; 1 an output diverges; 2 no GPU, or a run failed; 3 internal
error.)";

}  // namespace attn_diag::cli
