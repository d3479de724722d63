#include "harness/shrink/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "attn_diag/harness/check_problem.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/run.h"
#include "harness/base/parallel_for.h"
#include "harness/run/run_plan.h"
#include "harness/shrink/axes.h"
#include "harness/shrink/delta.h"

namespace attn_diag::shrink {
namespace {

using Clock = Trials::Clock;

class Shrinker {
 public:
  Shrinker(const Experiment& experiment, const ShrinkOptions& options)
      : x_given(experiment),
        x_options(options),
        x_begin(Clock::now()),
        x_trials(experiment.kernel, settings()) {
    x_block.problem = experiment.problem;
    x_block.tile = experiment.run.tile;
    x_block.num_splits = experiment.run.num_splits;
    x_axes = size_axes(experiment.problem, experiment.run.num_splits, options.hold);
  }

  ShrinkResult shrink() {
    step(1, "running the case as it is");
    const std::optional<TriedCase> given = case_of(x_block);
    if (!given)
      plan_geometry(x_given.kernel, x_given.problem, x_given.run);  // throws, and says why
    x_result.given = *given;
    const Told told = x_trials.aim(*given, x_options.lines);
    x_result.failure = told.failure;
    x_result.fails = told.said == Said::kFails;
    if (!x_result.fails) return finish();

    x_trials.stop_at(share(0.65));
    make_sizes_smaller();
    x_trials.stop_at(share(0.75));
    report_sizes();
    x_result.smallest = x_result.before_values = *case_of(x_block);
    x_result.origin = x_block.origin;
    x_result.made = made_by_kind(x_result.before_values);
    x_trials.stop_at(share(0.95));
    if (!x_options.keep_values) make_values_simpler();
    describe_values();
    if (const auto last = x_trials.known(x_result.smallest)) x_result.failure = last->failure;
    run_smallest();
    return finish();
  }

 private:
  static constexpr int kSteps = 4;

  Trials::Settings settings() {
    Trials::Settings s;
    s.run = x_given.run;
    s.tolerance = x_given.tolerance;
    s.processes = resolve_threads(x_options.processes);
    s.judge = x_options.judge;
    s.deadline = share(1);
    s.on_trial = [this](const std::string& what) { step(x_step, what); };
    return s;
  }

  Clock::time_point share(double part) const {
    return x_begin + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(part * x_options.seconds));
  }

  void step(int number, const std::string& what) {
    x_step = number;
    if (!x_options.on_step) return;
    const double left = std::chrono::duration<double>(share(1) - Clock::now()).count();
    x_options.on_step(number, kSteps,
                      fmt::format("{}, {} cases tried, {:.0f} s left", what, x_trials.tried(),
                                  std::max(0.0, left)));
  }

  bool is_held(const std::string& name) const {
    const std::vector<std::string>& held = x_options.hold;
    return std::find(held.begin(), held.end(), name) != held.end();
  }

  std::optional<TriedCase> case_of(const Block& block) const {
    return shrink::case_of(x_given, block);
  }

  // Whether the kernel plans for it; nothing is run.
  bool is_taken(const Block& block) const {
    for (const TileShape tile : {block.tile, TileShape{0, 0}}) {
      const TriedCase one = {block.problem, tile, block.num_splits, nullptr};
      try {
        plan_geometry(x_given.kernel, one.problem, options_for(one, x_given.run));
        return true;
      } catch (const Error&) {  // another tile may do
      }
    }
    return false;
  }

  static Block with(const Block& block, const SizeAxis& axis, std::int64_t size) {
    Block out = block;
    axis.set(out, size);
    return out;
  }

  // What the kernel takes of an axis, from `least` to below `end`.
  std::vector<std::int64_t> sizes_below(const SizeAxis& axis, std::int64_t end) const {
    std::vector<std::int64_t> sizes;
    for (std::int64_t n = axis.least; n < end; ++n)
      if (is_taken(with(x_block, axis, n))) sizes.push_back(n);
    return sizes;
  }

  std::optional<std::size_t> first_failing(const std::vector<Block>& blocks,
                                           const std::function<std::string(std::size_t)>& words) {
    return x_trials.first_failing(
        blocks.size(), [&](std::size_t i) { return case_of(blocks[i]); }, words);
  }

  FirstSize asking(const SizeAxis& axis) {
    return [this, &axis](const std::vector<std::int64_t>& candidates) {
      std::vector<Block> blocks;
      for (const std::int64_t n : candidates) blocks.push_back(with(x_block, axis, n));
      return first_failing(
          blocks, [&](std::size_t i) { return fmt::format("{} = {}", axis.name, candidates[i]); });
    };
  }

  std::vector<std::int64_t> likely() const {
    std::vector<std::int64_t> edges = {3, 5, 7, 9, 17, 33};
    for (const std::int64_t n : {x_block.tile.block_m, x_block.tile.block_n})
      for (const std::int64_t k : {1, 2}) edges.insert(edges.end(), {k * n - 1, k * n, k * n + 1});
    return edges;
  }

  bool make_smaller(const SizeAxis& axis) {
    const std::int64_t now = axis.get(x_block);
    std::vector<std::int64_t> sizes = sizes_below(axis, now);
    if (sizes.empty()) return false;
    sizes.push_back(now);
    const std::int64_t smaller = smaller_size(sizes, likely(), asking(axis));
    if (smaller < now) {
      x_block = with(x_block, axis, smaller);
      return true;
    }
    return move_to_failure(axis);
  }

  // Where 1 from the beginning does not fail: 1 at the place that is wrong.
  bool move_to_failure(const SizeAxis& axis) {
    const std::optional<TriedCase> now = case_of(x_block);
    const std::optional<Told> told = now ? x_trials.known(*now) : std::nullopt;
    if (axis.row < 0 || !told || told->failure.kind != FailureKind::kWrong) return false;
    std::int64_t at = told->failure.row[static_cast<std::size_t>(axis.row)];
    if (axis.row == 1) at /= group_size(x_block.problem);
    if (at <= 0) return false;
    Block block = with(x_block, axis, 1);
    block.origin[static_cast<std::size_t>(axis.origin)] += at;
    if (!first_failing({block}, [&](std::size_t) { return axis.name + " of the wrong cell"; }))
      return false;
    x_block = block;
    return true;
  }

  bool make_mask_simpler() {
    const Mask now = x_block.problem.mask;
    std::vector<Block> blocks;
    const auto add = [&](MaskKind kind, CausalAlignment alignment) {
      blocks.push_back(x_block);
      blocks.back().problem.mask = {kind, alignment, 0, 0};
    };
    if (now.kind == MaskKind::kNone) return false;
    add(MaskKind::kNone, CausalAlignment::kTopLeft);
    if (now.kind == MaskKind::kWindow) {
      add(MaskKind::kCausal, CausalAlignment::kTopLeft);
      add(MaskKind::kCausal, CausalAlignment::kBottomRight);
    }
    return take_first(blocks, "another mask");
  }

  bool make_tile_smaller() {
    const KernelInfo& info = x_given.kernel.info();
    std::vector<Block> blocks;
    const auto area = [](const TileShape& t) { return std::int64_t{t.block_m} * t.block_n; };
    for (std::int32_t i = 0; i < info.num_tiles; ++i) {
      if (area(info.tiles[i]) >= area(x_block.tile)) continue;
      blocks.push_back(x_block);
      blocks.back().tile = info.tiles[i];
    }
    std::stable_sort(blocks.begin(), blocks.end(),
                     [&](const Block& a, const Block& b) { return area(a.tile) < area(b.tile); });
    return take_first(blocks, "another tile");
  }

  bool take_first(const std::vector<Block>& blocks, const std::string& words) {
    const auto found = first_failing(blocks, [&](std::size_t) { return words; });
    if (found) x_block = blocks[*found];
    if (found) x_block.tile = case_of(x_block)->tile;
    return found.has_value();
  }

  void make_sizes_smaller() {
    step(2, "making it smaller");
    for (bool changed = true; changed && !x_trials.out_of_time();) {
      changed = false;
      if (x_block.problem.seqlen_q == x_block.problem.seqlen_k && !is_held("seqlen_q") &&
          !is_held("seqlen_k"))
        changed |= make_smaller(x_lengths);
      for (const SizeAxis& axis : x_axes) changed |= make_smaller(axis);
      changed |= make_mask_simpler();
      changed |= make_tile_smaller();
      if (const auto now = case_of(x_block)) x_block.tile = now->tile;
      // Halving may have jumped over something smaller.
      for (std::size_t i = 0; i < reported_axes().size() && !changed; ++i) {
        const SizeAxis axis = reported_axes()[i];
        const std::vector<std::int64_t> below = sizes_below(axis, axis.get(x_block));
        constexpr std::size_t kMost = 300;
        if (below.size() > kMost) continue;
        const auto found = asking(axis)(below);
        if (found) x_block = with(x_block, axis, below[*found]);
        changed = found.has_value();
      }
    }
    x_result.out_of_time = x_trials.out_of_time();
  }

  // The two lengths are one size where the kernel takes no others.
  std::vector<SizeAxis> reported_axes() const {
    const Problem& p = x_block.problem;
    std::vector<SizeAxis> axes;
    Block other = x_block;
    ++other.problem.seqlen_k;
    const bool square = p.seqlen_q == p.seqlen_k && !is_held("seqlen_q") && !is_held("seqlen_k") &&
                        !is_taken(other);
    for (const SizeAxis& axis : x_axes) {
      if (axis.name == "seqlen_k" && square) continue;
      if (axis.name.starts_with("window") && p.mask.kind != MaskKind::kWindow) continue;
      axes.push_back(axis.name == "seqlen_q" && square ? x_lengths : axis);
    }
    return axes;
  }

  SizeReport::Neighbour neighbour(const SizeAxis& axis, std::int64_t size, bool& known) {
    asking(axis)({size});
    const std::optional<TriedCase> one = case_of(with(x_block, axis, size));
    const std::optional<Told> told = one ? x_trials.known(*one) : std::nullopt;
    known = told.has_value();
    return {size, told ? told->said : Said::kRefused, told ? told->failure.what : ""};
  }

  void report_sizes() {
    step(3, "trying its neighbours");
    Block given;
    given.problem = x_given.problem;
    given.num_splits = x_result.given.num_splits;
    for (const SizeAxis& axis : reported_axes()) {
      SizeReport report;
      report.name = axis.name;
      report.from = axis.get(given);
      report.to = axis.get(x_block);
      report.least = axis.least;
      if (report.from <= axis.least) continue;
      const std::vector<std::int64_t> below = sizes_below(axis, report.to);
      report.smaller = std::ssize(below);
      constexpr int kMost = 16;
      int asked = 0;
      for (std::size_t i = below.size(); i-- > 0 && !report.passes && asked < kMost; ++asked) {
        bool known = false;
        const SizeReport::Neighbour one = neighbour(axis, below[i], known);
        if (!known || one.said == Said::kRefused) continue;
        if (!report.below) report.below = one;
        if (one.said == Said::kPasses) report.passes = one.size;
      }
      for (const std::int64_t n : below) {
        const auto one = case_of(with(x_block, axis, n));
        report.smaller_tried += one && x_trials.known(*one);
      }
      constexpr std::int64_t kFar = 64;
      for (std::int64_t n = report.to + 1; n <= report.to + kFar && !report.above; ++n) {
        if (!is_taken(with(x_block, axis, n))) continue;
        bool known = false;
        const SizeReport::Neighbour one = neighbour(axis, n, known);
        if (!known) break;  // there are no numbers for it, or no time
        if (one.said != Said::kRefused) report.above = one;
      }
      x_result.sizes.push_back(std::move(report));
    }
  }

  void make_values_simpler() {
    step(4, "making its numbers simpler");
    const Problem& p = x_result.smallest.problem;
    Numbers numbers = numbers_of(x_result.smallest);
    std::size_t elements = 0;
    for (const std::vector<double>& values : numbers.values) elements += values.size();
    constexpr std::size_t kMost = 50'000;
    if (elements > kMost) {
      x_result.notes.push_back(fmt::format(
          "Its numbers are as they were: {} are too many to be tried one by one.", elements));
      return;
    }
    const auto zero = [](double) { return 0.0; };
    const auto one = [](double) { return 1.0; };
    const auto integer = [](double x) {
      const double rounded = std::round(x);
      return rounded != 0 ? rounded : x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0;
    };
    const auto larger = [](double x) { return std::copysign(std::ceil(std::fabs(x)), x); };
    struct Pass {
      PartSize size;
      std::function<double(double)> simpler;
      const char* words;
      bool of_zeros;  // those that are 0 already stay
    };
    const std::vector<Pass> passes = {{PartSize::kHeads, zero, "heads of zeros", false},
                                      {PartSize::kRows, zero, "rows of zeros", false},
                                      {PartSize::kElements, zero, "zeros", false},
                                      {PartSize::kElements, one, "ones", true},
                                      {PartSize::kElements, integer, "integers", true},
                                      {PartSize::kElements, larger, "larger integers", true}};
    bool changed = true;
    for (int round = 0; round < 2 && changed; ++round) {
      changed = false;
      for (const Pass& pass : passes)
        changed |= simplify(p, numbers, pass.size, pass.simpler, pass.words, pass.of_zeros);
    }
    x_result.out_of_time = x_trials.out_of_time();
  }

  // Puts in place of as many parts as it can what is simpler.
  bool simplify(const Problem& problem, Numbers& numbers, PartSize size,
                const std::function<double(double)>& simpler, const char* words, bool zeros_stay) {
    const auto changes = [&](int tensor, std::int64_t i) {
      const double x =
          numbers.values[static_cast<std::size_t>(tensor)][static_cast<std::size_t>(i)];
      const double y = simpler(x);
      return !(zeros_stay && x == 0) && !(y == x && std::signbit(y) == std::signbit(x));
    };
    std::vector<Part> parts = parts_of(problem, size);
    for (Part& part : parts)
      std::erase_if(part.elements, [&](std::int64_t i) { return !changes(part.tensor, i); });
    std::erase_if(parts, [](const Part& part) { return part.elements.empty(); });
    if (parts.empty()) return false;
    const auto with_kept = [&](const std::vector<int>& kept) {
      Numbers out = numbers;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (std::binary_search(kept.begin(), kept.end(), static_cast<int>(i))) continue;
        std::vector<double>& values = out.values[static_cast<std::size_t>(parts[i].tensor)];
        for (const std::int64_t e : parts[i].elements)
          values[static_cast<std::size_t>(e)] = simpler(values[static_cast<std::size_t>(e)]);
      }
      return out;
    };
    const auto case_with = [&](const std::vector<int>& kept) {
      TriedCase out = x_result.smallest;
      out.inputs = shrink::inputs_of(with_kept(kept), problem);
      return out;
    };
    const FirstSet ask = [&](std::size_t count, const SetOfParts& set) {
      return x_trials.first_failing(
          count, [&](std::size_t i) { return std::optional(case_with(set(i))); },
          [&](std::size_t) { return std::string(words); });
    };
    const std::vector<int> kept = necessary_parts(static_cast<int>(parts.size()), ask);
    if (kept.size() == parts.size()) return false;
    x_result.smallest = case_with(kept);
    numbers = numbers_of(x_result.smallest);
    return true;
  }

  void describe_values() {
    const Numbers numbers = numbers_of(x_result.smallest);
    x_result.integers = true;
    for (const std::vector<double>& values : numbers.values)
      for (const double x : values) {
        ++x_result.elements[0];
        x_result.elements[1] += x != 0;
        x_result.integers = x_result.integers && x == std::round(x);
      }
  }

  void run_smallest() {
    const TriedCase& one = x_result.smallest;
    RunOptions run = options_for(one, x_given.run);
    const Experiment experiment = x_given.with(one.problem, *one.inputs).with(run);
    run.taps = has_gate(x_given.kernel.info(), run.gate) && run.gate != Gate::kFull;
    x_result.look = x_trials.how();
    const FailureKind kind = x_result.failure.kind;
    if (x_options.judge) run.taps = false;
    if (kind == FailureKind::kRefused || kind == FailureKind::kCrash ||
        kind == FailureKind::kNoEnd) {
      run.taps = false;
      x_result.capture = capture_before_run(experiment.with(run));
      return;
    }
    const auto take = [&](const RunOptions& how) {
      x_result.capture = run_kernel(experiment.with(how));
      x_result.shows_it =
          answer_of(x_result.capture, compare_with_reference(x_result.capture, x_given.tolerance,
                                                             1)) == Answer::kDiverges;
      return x_result.shows_it;
    };
    if (x_options.judge) {
      take(run);
      return;
    }
    x_result.trace = trace(experiment, trace_options(x_trials.how()));
    Failure again = failure_of(*x_result.trace);
    again.line = x_result.failure.line;
    if (!x_result.failure.same_as(again))
      x_result.notes.push_back(
          "Run once more, the smallest case does not show the same: what the kernel computes is "
          "not the same in every process.");
    const auto take_it = [&](const RunOptions& how) {
      x_result.with_taps = how.taps;
      return take(how);
    };
    if (take_it(run)) return;
    RunOptions other = run;
    other.taps = false;
    if (run.taps && take_it(other)) return;
    other = run;
    other.schedule = x_result.trace->capture.provenance.schedule;
    if (other.schedule == run.schedule || !take_it(other)) take_it(run);
  }

  ShrinkResult finish() {
    x_result.tried = x_trials.tried();
    x_result.remembered = x_trials.remembered();
    x_result.seconds = std::chrono::duration<double>(Clock::now() - x_begin).count();
    return std::move(x_result);
  }

  const Experiment x_given;
  const ShrinkOptions& x_options;
  Clock::time_point x_begin;
  Trials x_trials;
  std::vector<SizeAxis> x_axes;
  const SizeAxis x_lengths = both_lengths();
  Block x_block;  // the smallest so far
  int x_step = 1;
  ShrinkResult x_result;
};

}  // namespace

ShrinkResult shrink(const Experiment& experiment, const ShrinkOptions& options) {
  return Shrinker(experiment, options).shrink();
}

}  // namespace attn_diag::shrink
