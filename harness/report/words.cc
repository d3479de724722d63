#include "harness/report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/check.h"
#include "attn_diag/harness/host/executor.h"
#include "attn_diag/harness/inputs.h"
#include "attn_diag/harness/xray.h"
#include "attn_diag/kernels/stage.h"
#include "attn_diag/reference/counterfactual.h"
#include "harness/backends/cuda/run_on_gpu.h"
#include "harness/report/text.h"

namespace attn_diag::report {
namespace {

struct Text {
  const char* word;
  const char* meaning;
  const char* advice = "";
};

// In the order of the enumerations.
constexpr std::array<Text, kNumStages> kStageTexts = {{
    {"qk", "The scores: q times k, scaled and masked."},
    {"softmax", "The row maximum, the weights exp(S - m) and their sum, of each KV tile."},
    {"pv", "The weights of a KV tile times its rows of v."},
    {"reduce",
     "What joins KV tiles and splits: the running maximum, sum and accumulator, the merge of "
     "splits, the division by l, and the output."},
}};
constexpr std::array<Text, kNumTensors> kTensorTexts = {{
    {"S", "Scores: softmax_scale * q.k, -inf where masked."},
    {"m", "The row maximum, which is what P is relative to."},
    {"l", "The sum of P over the keys of one KV tile."},
    {"P", "The weights exp(S - m), not normalised; 0 where masked."},
    {"partial_o", "P times V of one KV tile, not normalised."},
    {"running_m", "The row maximum after a KV tile, over the tiles of its split so far."},
    {"running_l", "The row sum after a KV tile, relative to running_m."},
    {"running_o", "The accumulator after a KV tile, relative to running_m."},
    {"merged_l", "The row sum after merging splits 0 to n, relative to the maximum of all."},
    {"merged_o", "The accumulator after merging splits 0 to n, relative to the maximum of all."},
    {"lse",
     "m + ln l: the logarithm of the row's sum of exponentials; -inf where no key is visible."},
    {"o", "The output; 0 in a row that sees no key."},
}};
constexpr std::array<Text, host::kNumCheckKinds> kCheckTexts = {{
    {"race",
     "Two accesses to one byte, of two threads, at least one of them a store, that nothing "
     "orders. Within a warp it is latent, unless lanes of one instruction store different values.",
     "Put a barrier between the two lines, or give each thread bytes of its own."},
    {"missing-fence",
     "Data were handed to another block by a counter or flag, but no __threadfence() came before "
     "it.",
     "Put __threadfence() between the stores and the flag."},
    {"uninitialised-read",
     "A read of memory that nothing has written: shared memory, output, workspace, cudaMalloc.",
     "Write it first, or do not read it; look at tails and at loops that clear."},
    {"out-of-bounds", "An access outside every array, or an index past the end of its array.",
     "Look at the index and at the predicate of the tail."},
    {"use-after-free", "An access to memory that cudaFree has taken back.",
     "Free it after the last kernel that uses it has ended."},
    {"misaligned", "A vector access whose address is no multiple of its alignment.",
     "Pad rows to a multiple of the vector, or access single elements."},
    {"async-copy",
     "The destination of an asynchronous copy is accessed before the wait that completes it.",
     "Wait for its group, then synchronise, before the data are used."},
    {"int-overflow", "Signed arithmetic whose result does not fit its type.",
     "Compute offsets in 64 bits."},
    {"input-write", "A store to q, k or v.", "Copy what you change."},
    {"unwritten-output", "Elements of o or lse that nothing has stored.",
     "Look at the grid, at loops over rows and columns that end early, and at guards around the "
     "store."},
    {"launch",
     "A launch that did not complete: threads wait at different barriers, a warp collective lacks "
     "lanes, or tensor-core fragments or asynchronous copies are misused.",
     "All threads must reach each barrier, and all lanes of the mask each collective."},
}};
constexpr Text kSeverityTexts[] = {
    {"error", "Of check: wrong today."},
    {"latent",
     "Right as a GPU most likely runs it, wrong otherwise: of check, what only the convergence of "
     "a warp orders; of trace, a result that moves with the order of threads or with bytes that "
     "nobody wrote.",
     "CUDA does not promise it: mend it. attn-diag check finds the lines."},
    {"benign", "Of check: harmless as far as was seen. It does not count."},
};
constexpr Text kLineTexts[] = {
    {"wrong-line", "The line of the source at which the kernel first leaves attention."},
    {"likely-line", "The likeliest of the lines at which the kernel may leave attention; not sure.",
     "Look at it and at those named after it; attn-diag repair tries small edits there."},
    {"crash", "The code under test ended the process, or did not end in time."},
};
constexpr Text kExitTexts[] = {
    {"0", "Agrees: everything that can be judged is right. Of commands that judge nothing: done."},
    {"1", "Diverges, or is latent."},
    {"2",
     "Could not compare: bad usage, a bad file, an unsupported problem, nothing launched, nothing "
     "of o judged, a launch that failed, output not written."},
    {"3", "Internal error.", "Please report it with the command line."},
};
constexpr Text kVerdictTexts[] = {
    {"agrees", "Every judged cell is within what rounding can explain, and nothing else is wrong."},
    {"diverges", "A cell is further off than rounding can explain, or the result is unsound."},
    {"could_not_compare", "Neither right nor wrong: nothing of o could be judged, or nothing ran."},
    {"unsupported",
     "The kernel says that it does not take this problem. In a table it is counted, "
     "and decides nothing."},
    {"failed", "The run did not come to a result: a launch or a check of memory failed."},
    {"exempt", "The kernel cannot show this stage, and says why."},
    {"not_reached", "The run ended before this stage (--stage)."},
    {"not_run", "The stage was not looked at."},
    {"not_judged", "No cell of it has a bound, as with NaN or infinity in the inputs."},
    {"stale", "The sources have changed since the library was built: the old code is judged.",
     "Build it again."},
    {"named",
     "Of diagnose: one bug of the catalogue, or a pair, explains every row, and no other."},
    {"class", "Of diagnose: several bugs explain every row; these inputs cannot tell them apart.",
     "Run with --inputs probe."},
    {"partial", "Of diagnose: the best bug explains most of the wrong rows, not all."},
    {"unknown", "Of diagnose: none of the known bugs.",
     "attn-diag trace looks for the line, attn-diag check at memory."},
    {"not_a_formula",
     "Of diagnose: the result moves, or memory was read before it was written: no "
     "formula explains that.",
     "attn-diag check finds the lines."},
    {"nothing_wrong", "Of diagnose: the comparison agrees."},
    {"steady", "The same bits in every run of gate 0."},
    {"reads_unwritten", "The result depends on what was in some memory before the run.",
     "attn-diag check finds the read."},
    {"depends_on_order", "The result depends on the order in which threads run.",
     "attn-diag check finds the race."},
    {"blocks_race",
     "Blocks access the same memory with nothing to order them: one run, right or wrong, says "
     "nothing of the next.",
     "attn-diag check finds the race."},
    {"moves", "Two runs differ though nothing was changed.", "attn-diag check finds the race."},
    {"clean", "Of check: nothing of severity error or latent."},
    {"found", "Of check: errors or latent findings."},
};
constexpr Text kScheduleTexts[] = {
    {"forward",
     "Threads of a block run one after the other to their next barrier, the first first."},
    {"reverse", "Likewise, the last thread first."},
    {"seed:N", "Likewise, in an order drawn from N."},
    {"lockstep",
     "The lanes of a warp go together, as a GPU's mostly do; warps in order. Needs the "
     "instrumented build."},
    {"lockstep:reverse", "Likewise, the last warp first."},
    {"lockstep:turns", "Likewise, warps take turns."},
};
constexpr Text kMaskTexts[] = {
    {"none", "Every query sees every key."},
    {"causal",
     "Query i sees keys 0 to i. Where queries and keys differ in number, say which of "
     "the two below."},
    {"causal:top_left", "Query 0 sees key 0, query i the keys up to i."},
    {"causal:bottom_right",
     "The last query sees the last key: query i sees keys up to "
     "i + seqlen_k - seqlen_q."},
    {"window:LEFT,RIGHT",
     "Query i sees LEFT keys before its own and RIGHT after it, aligned "
     "bottom right."},
};
constexpr Text kGateText = {
    "full", "Of --stage: the production kernel, without taps; only o and lse are seen."};
constexpr Text kTypeTexts[] = {
    {"fp16", "IEEE half precision: 11 bits of significand, up to 65504."},
    {"bf16", "bfloat16: 8 bits of significand, the range of fp32."},
    {"fp32", "IEEE single precision: 24 bits of significand."},
    {"BHSD", "Memory order batch, head, sequence, dim."},
    {"BSHD", "Memory order batch, sequence, head, dim."},
};
constexpr Text kCopyTexts[] = {
    {"late", "Of --async-copies: copies land at the wait that must complete them."},
    {"early", "Of --async-copies: copies land when they are issued."},
};

class Collector {
 public:
  template <class Texts>
  void add(const char* kind, const Texts& texts, const char* see) {
    for (const Text& t : texts) x_words.push_back({t.word, kind, t.meaning, t.advice, see});
  }
  void add(Word word) { x_words.push_back(std::move(word)); }
  std::vector<Word> take() { return std::move(x_words); }

 private:
  std::vector<Word> x_words;
};

std::string upper_first(std::string_view text) {
  std::string s(text);
  if (!s.empty()) s[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(s[0])));
  return s.empty() || s.back() == '.' ? s : s + '.';
}

void add_stages(Collector& to) {
  for (std::size_t s = 0; s < kStages.size(); ++s) {
    std::string made, from;
    for (const TensorInfo& t : kTensors) {
      if (t.stage == kStages[s].id) made += fmt::format("{}{}", made.empty() ? "" : ", ", t.name);
      if ((kStages[s].inputs & tensor_bit(t.id)) != 0)
        from += fmt::format("{}{}", from.empty() ? "" : ", ", t.name);
    }
    to.add({std::string(kStages[s].name), "stage",
            fmt::format("{} Computes {} from {}.", kStageTexts[s].meaning, made,
                        from.empty() ? "q and k"
                        : s == 2     ? from + " and v"
                                     : from),
            "", "attn-diag run --isolate judges each stage alone"});
  }
  to.add("stage", std::array{kGateText}, "attn-diag list");
  for (const TensorInfo& t : kTensors) {
    std::string axes;
    for (int i = 0; i < t.rank; ++i)
      axes += fmt::format("{}{}", i == 0 ? "" : ", ", name(t.axes[static_cast<std::size_t>(i)]));
    to.add({std::string(t.name), "tensor",
            fmt::format("{} Of stage {}; by {}.",
                        kTensorTexts[static_cast<std::size_t>(t.id)].meaning, name(t.stage), axes),
            "", "docs/schema.md"});
  }
}

void add_registries(Collector& to) {
  for (const InputKindInfo& kind : input_kinds())
    to.add({kind.name, "input kind", upper_first(kind.summary), "", "docs/inputs.md"});
  for (std::size_t i = 0; i < kNumProperties; ++i) {
    const PropertyInfo& p = info(static_cast<Property>(i));
    to.add({p.name, "property of xray --properties", upper_first(p.statement),
            fmt::format("Where it does not hold: {}", upper_first(p.meaning)), "docs/xray.md"});
  }
  for (const reference::Hypothesis* hypothesis : reference::catalogue()) {
    const reference::HypothesisInfo& h = hypothesis->info();
    std::string meaning = upper_first(h.statement);
    meaning +=
        fmt::format(" Stage {}, chapter {}, formula {}.", name(h.stage), name(h.family), h.formula);
    if (!h.parameters.empty()) meaning += fmt::format(" Fits {}.", fmt::join(h.parameters, ", "));
    if (!h.citation.empty()) meaning += fmt::format(" Seen in {}.", h.citation);
    to.add({std::string(h.id), "bug of the catalogue", meaning,
            fmt::format("Look at: {}", upper_first(h.remedy)), "docs/catalogue.md"});
  }
}

std::vector<Word> collect() {
  Collector to;
  to.add("exit code", kExitTexts, "docs/reports.md");
  to.add("verdict", kVerdictTexts, "docs/reports.md");
  add_stages(to);
  to.add("finding of check", kCheckTexts, "docs/checking.md");
  to.add("severity", kSeverityTexts, "docs/checking.md");
  to.add("finding of trace", kLineTexts, "docs/lines.md");
  to.add("schedule", kScheduleTexts, "docs/debugging-on-the-cpu.md");
  to.add("mask", kMaskTexts, "attn-diag run --help");
  to.add("type or memory order", kTypeTexts, "attn-diag run --help");
  to.add("landing of copies", kCopyTexts, "attn-diag run --help");
  to.add({"host", "backend", host::limits_in_one_line(), "", "docs/debugging-on-the-cpu.md"});
  to.add({"cuda", "backend", cuda::limits_in_one_line(), "", "attn-diag doctor"});
  add_registries(to);
  return to.take();
}

// "Could-Not-Compare" as "could_not_compare"; o and O, and p and P, are what they are where both are words.
std::string plain(std::string_view text) {
  std::string s;
  for (const char c : text)
    s += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

}  // namespace

const std::vector<Word>& words() {
  static const std::vector<Word> all = collect();
  return all;
}

std::vector<Word> find_words(std::string_view text) {
  std::vector<Word> found;
  for (const Word& word : words())
    if (word.word == text) found.push_back(word);
  if (!found.empty()) return found;
  for (const Word& word : words())
    if (plain(word.word) == plain(text)) found.push_back(word);
  return found;
}

std::optional<Word> find_word(std::string_view text) {
  const std::vector<Word> found = find_words(text);
  return found.empty() ? std::nullopt : std::optional<Word>(found.front());
}

}  // namespace attn_diag::report
