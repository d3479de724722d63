// What a block has to report, in words.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <vector>

#include "attn_diag/harness/host/call_clock.h"
#include "attn_diag_host/indices.h"
#include "harness/host/block_reporter.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

std::string in_parentheses(unsigned x, unsigned y, unsigned z) {
  return concat('(', x, ',', y, ',', z, ')');
}

const char* operation_name(WarpOp op) {
  switch (op) {
    case WarpOp::kSync:
      return "__syncwarp";
    case WarpOp::kShuffle:
      return "__shfl_sync";
    case WarpOp::kShuffleUp:
      return "__shfl_up_sync";
    case WarpOp::kShuffleDown:
      return "__shfl_down_sync";
    case WarpOp::kShuffleXor:
      return "__shfl_xor_sync";
    case WarpOp::kBallot:
      return "__ballot_sync";
    case WarpOp::kAny:
      return "__any_sync";
    case WarpOp::kAll:
      return "__all_sync";
    case WarpOp::kMatchAny:
      return "__match_any_sync";
    case WarpOp::kMatchAll:
      return "__match_all_sync";
    case WarpOp::kMatrixLoad:
      return "load_matrix_sync";
    case WarpOp::kMatrixStore:
      return "store_matrix_sync";
    case WarpOp::kMatrixMultiply:
      return "mma_sync";
    case WarpOp::kLoadMatrix:
      return "ldmatrix";
    case WarpOp::kStoreMatrix:
      return "stmatrix";
    case WarpOp::kMma:
      return "mma.sync";
    default:
      return "__reduce_sync";
  }
}

std::string place(const Fiber& fiber) { return concat(fiber.file, ':', fiber.line); }

}  // namespace

void BlockReporter::begin_launch(const LaunchPlan& plan, void (*fiber_main)()) {
  BlockThreads::begin_launch(plan, fiber_main);
  x_latent_places.clear();
}

void BlockReporter::begin_block() {
  BlockThreads::begin_block();
  x_abandoned = false;
  x_outcome = BlockOutcome{};
}

void BlockReporter::describe_wait(Wait wait, WaitText text) {
  x_wait_text[static_cast<std::size_t>(wait)] = std::move(text);
}

void BlockReporter::note(const std::string& text) {
  x_outcome.note = concat(x_outcome.note, has_note() ? " " : "", text);
}

std::string BlockReporter::waits_at(const Fiber& fiber) const {
  switch (fiber.wait) {
    case Wait::kBarrier:
      return concat("__syncthreads at ", place(fiber));
    case Wait::kBarrierObject:
      return concat("cuda::barrier::wait at ", place(fiber));
    case Wait::kNamedBarrier:
    case Wait::kMbarrier:
      return concat(x_wait_text[static_cast<std::size_t>(fiber.wait)](fiber), " at ", place(fiber));
    case Wait::kSpin:
      return concat("a loop that polls at ", place(fiber));
    case Wait::kGrid:
      return concat("grid.sync() at ", place(fiber));
    case Wait::kLoop:
    case Wait::kBusy:
      return concat("a loop ", fiber.file == nullptr ? "before any synchronisation point"
                                                     : concat("after ", place(fiber)));
    case Wait::kNone:
    case Wait::kWarp:
      break;
  }
  char mask[16];
  std::snprintf(mask, sizeof mask, "0x%08X", fiber.mask);
  return concat(operation_name(static_cast<WarpOp>(fiber.call & 0xFFu)), " with mask ", mask,
                " at ", place(fiber));
}

std::string BlockReporter::where() const {
  const uint3 block = ::blockIdx;
  return concat("kernel ", kernel_name(x_plan->call), ", block ",
                in_parentheses(block.x, block.y, block.z));
}

std::string BlockReporter::thread_name(const Fiber& fiber) const {
  return concat("thread ", in_parentheses(fiber.index.x, fiber.index.y, fiber.index.z));
}

std::string BlockReporter::waiting_list() const {
  struct WaitingThreads {
    std::string what;
    std::string threads;
    unsigned count = 0;
  };
  std::vector<WaitingThreads> waiting;
  for (unsigned t = 0; t < x_threads; ++t) {
    const Fiber& fiber = x_fibers[t];
    if (fiber.wait == Wait::kNone || is_runnable(t)) continue;
    const std::string what = waits_at(fiber);
    // The run of neighbours along x that wait at the same place.
    unsigned last = t;
    while (last + 1 < x_threads && x_fibers[last + 1].index.x == x_fibers[last].index.x + 1 &&
           x_fibers[last + 1].wait != Wait::kNone && !is_runnable(last + 1) &&
           waits_at(x_fibers[last + 1]) == what)
      ++last;
    const std::string range = last == t
                                  ? in_parentheses(fiber.index.x, fiber.index.y, fiber.index.z)
                                  : concat('(', fiber.index.x, "..", x_fibers[last].index.x, ',',
                                           fiber.index.y, ',', fiber.index.z, ')');
    auto same = std::find_if(waiting.begin(), waiting.end(),
                             [&](const WaitingThreads& p) { return p.what == what; });
    if (same == waiting.end()) same = waiting.insert(same, WaitingThreads{what, "", 0});
    same->threads = concat(same->threads, same->threads.empty() ? "" : ", ", range);
    same->count += last - t + 1;
    t = last;
  }
  std::string text;
  for (const WaitingThreads& p : waiting)
    text = concat(text, text.empty() ? "" : "; ", p.count == 1 ? "thread " : "threads ", p.threads,
                  " at ", p.what);
  return text;
}

void BlockReporter::record(LaunchFindingKind kind, const std::string& what,
                           const std::string& advice, const char* file, int line,
                           const Fiber* who) {
  LaunchFinding finding;
  finding.kind = kind;
  finding.message = concat(where(), ": ", what, ". ", advice, ".");
  finding.file = file == nullptr ? "" : file;
  finding.line = line;
  x_outcome.finding = std::move(finding);
  if (x_check != nullptr && file != nullptr)
    x_check->ended_at(returns_of(who == nullptr ? *x_current : *who));
}

__attribute__((no_sanitize_address)) std::vector<StackWord> BlockReporter::returns_of(
    const Fiber& fiber) const {
  constexpr std::size_t kMost = 256;
  const FiberStack& stack = x_stack[fiber.index.linear];
  const std::uintptr_t from =
      address(&fiber == x_current ? __builtin_frame_address(0) : stack_of(fiber.context));
  std::vector<StackWord> returns;
  if (!is_of(fiber.index.linear, from)) return returns;  // it has left its stack
  const auto* const end = reinterpret_cast<const std::uintptr_t*>(stack.top);
  for (const auto* word =
           reinterpret_cast<const std::uintptr_t*>(from / sizeof(from) * sizeof(from));
       word < end && returns.size() < kMost; ++word)
    if (x_plan->library.has_code_at(*word)) returns.push_back({address(word), *word});
  return returns;
}

void BlockReporter::record_exception(const std::string& what) {
  const Fiber& fiber = *x_current;
  record(LaunchFindingKind::kKernelException,
         concat(thread_name(fiber), " threw an exception: ", what),
         "Device code cannot throw; catch it in the kernel or do not call what throws", fiber.file,
         fiber.line);
}

// Neither this block nor another has got on: threads that loop are reported first.
void BlockReporter::record_silence() {
  const Fiber* fiber = x_current;
  for (unsigned t = 0; t < x_threads; ++t)
    if (x_fibers[t].wait >= Wait::kSpin) {
      fiber = &x_fibers[t];
      break;
    }
  const std::string last = fiber->file == nullptr ? std::string("it has not reached one yet")
                                                  : concat("the last was at ", place(*fiber));
  stop_all();
  const std::string waiting = waiting_list();
  const BlockTurns& turns = *x_plan->turns;
  const std::string others = turns.started() < turns.blocks()
                                 ? concat("; ", turns.started(), " of ", turns.blocks(),
                                          " blocks have been started, and no more than ",
                                          turns.most_workers(), " can run at once")
                                 : "";
  record(
      LaunchFindingKind::kStepLimit,
      concat(thread_name(*fiber),
             is_out_of_time() ? concat(" did not come to its end in the time that it was given "
                                       "(--timeout)")
                              : concat(" has used ", x_plan->silent_seconds,
                                       " s of CPU time without reaching a synchronisation point"),
             "; ", last, waiting.empty() ? "" : concat("; waiting are ", waiting), others),
      "Look for a loop whose end is never reached, or that waits for what no thread stores; a flag "
      "that others set must be read as volatile or by an atomic function",
      fiber->file, fiber->line);
}

void BlockReporter::leave_for_good() {
  x_abandoned = true;
  leave_block(true);
  __builtin_unreachable();
}

// The kind of wait that most likely shows the mistake comes first.
void BlockReporter::report_stuck() {
  struct Advice {
    Wait wait;
    LaunchFindingKind kind;
    const char* text;
  };
  static constexpr Advice kAdvice[] = {
      {Wait::kWarp, LaunchFindingKind::kWarpDivergence,
       "A warp collective needs every lane of its mask that has not returned, in the same call "
       "with "
       "the same mask; lanes waiting elsewhere never come. Make the mask name the lanes that take "
       "the branch, or move the call out of it"},
      {Wait::kMbarrier, LaunchFindingKind::kBarrierDivergence,
       "A phase of an mbarrier ends when as many have arrived as it was initialised for and all "
       "bytes that were announced have been copied; look at the count, the bytes, and the parity "
       "that is waited for"},
      {Wait::kNamedBarrier, LaunchFindingKind::kBarrierDivergence,
       "A named barrier is passed when as many threads have arrived as its users name"},
      {Wait::kBarrierObject, LaunchFindingKind::kBarrierDivergence,
       "A phase of a cuda::barrier ends when as many have arrived as it was initialised for"},
      {Wait::kBarrier, LaunchFindingKind::kBarrierDivergence,
       "All threads of a block that have not returned must reach the same __syncthreads()"},
  };
  for (const Advice& advice : kAdvice) {
    const Fiber* const begin = x_fibers.get();
    const Fiber* const end = begin + x_threads;
    const Fiber* const fiber =
        std::find_if(begin, end, [&](const Fiber& f) { return f.wait == advice.wait; });
    if (fiber == end) continue;
    record(advice.kind, concat("no thread can go on: ", waiting_list()), advice.text, fiber->file,
           fiber->line, fiber);
    for (const Fiber* other = begin; x_check != nullptr && other != end; ++other)
      if (other->wait != Wait::kNone && other->file != nullptr)
        x_check->other_waits_at(other->file, other->line, returns_of(*other));
    break;
  }
  leave_for_good();
}

void BlockReporter::report_step_limit() {
  const Fiber& fiber = *x_current;
  record(LaunchFindingKind::kStepLimit,
         concat("the block has not ended after ", x_step_limit, " synchronisation steps; ",
                thread_name(fiber), " is at ", place(fiber)),
         "Look for a loop whose end is never reached, or raise the step limit", fiber.file,
         fiber.line);
  leave_for_good();
}

void BlockReporter::note_latent(const std::string& what, const std::string& why, const char* file,
                                int line) {
  for (const auto& [known_file, known_line] : x_latent_places)
    if (known_line == line && known_file == file) return;
  x_latent_places.emplace_back(file, line);
  x_outcome.latent.push_back(concat("latent: kernel ", kernel_name(x_plan->call), ' ', what, " at ",
                                    file, ':', line, ": ", why, '.'));
}

}  // namespace attn_diag::host
