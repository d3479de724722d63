#include "harness/host/check/announced_loop.h"

#include <algorithm>

namespace attn_diag::host {
namespace {

using namespace callouts;
__extension__ using Wide = __int128;

constexpr std::int64_t kFar = std::int64_t{1}
                              << 40;  // of strides and of how often a loop goes round

// A loop's shape and values, by what they are.
struct Announcement {
  std::uint32_t loops, accesses, tests, steps;
  const std::uint32_t *word, *test, *step;
  const std::int64_t *again, *address, *operand;

  Announcement(const std::uint32_t* shape, const std::int64_t* values)
      : loops(shape[0]),
        accesses(shape[1]),
        tests(shape[2]),
        steps(shape[3]),
        word(shape + 4),
        test(word + accesses),
        step(test + tests),
        again(values),
        address(values + loops),
        operand(address + accesses * (loops + 1)) {}
};

// Of 64-bit numbers; `known` if the ends fit.
struct Range {
  std::int64_t low = 0, high = 0;
  bool known = false;
  bool within(std::int64_t least, std::int64_t most) const {
    return known && low >= least && high <= most;
  }
};

// The values that a form takes in all iterations.
Range range_of(const std::int64_t* form, const Announcement& all) {
  Range range{form[0], form[0], true};
  for (std::uint32_t i = 0; i < all.loops; ++i) {
    if (form[1 + i] == 0) continue;
    std::int64_t reach = 0;
    std::int64_t& end = form[1 + i] < 0 ? range.low : range.high;
    if (__builtin_mul_overflow(form[1 + i], all.again[i], &reach) ||
        __builtin_add_overflow(end, reach, &end))
      return {};
  }
  return range;
}

Range sum(const Range& a, const Range& b) {
  Range range;
  range.known = !__builtin_add_overflow(a.low, b.low, &range.low) &&
                !__builtin_add_overflow(a.high, b.high, &range.high);
  return range;
}

Range difference(const Range& a, const Range& b) {
  Range range;
  range.known = !__builtin_sub_overflow(a.low, b.high, &range.low) &&
                !__builtin_sub_overflow(a.high, b.low, &range.high);
  return range;
}

Range product(const Range& a, const Range& b) {
  std::array<std::int64_t, 4> corners{};
  if (__builtin_mul_overflow(a.low, b.low, &corners[0]) ||
      __builtin_mul_overflow(a.low, b.high, &corners[1]) ||
      __builtin_mul_overflow(a.high, b.low, &corners[2]) ||
      __builtin_mul_overflow(a.high, b.high, &corners[3]))
    return {};
  const auto [low, high] = std::minmax_element(corners.begin(), corners.end());
  return {*low, *high, true};
}

bool holds(LoopTest test, const Range& a, const Range& b, std::int64_t least, std::int64_t most) {
  switch (test) {
    case LoopTest::kFits:
      return true;
    case LoopTest::kFitsUnsigned:
      return a.low >= 0;
    case LoopTest::kAdd:
      return sum(a, b).within(least, most);
    case LoopTest::kSubtract:
      return difference(a, b).within(least, most);
    case LoopTest::kMultiply:
      return product(a, b).within(least, most);
    case LoopTest::kLess:
      return a.high < b.low;
    case LoopTest::kNotMore:
      return a.high <= b.low;
    case LoopTest::kBelow:
      return a.low >= 0 && a.high < b.low;
    case LoopTest::kNotAbove:
      return a.low >= 0 && a.high <= b.low;
  }
  return false;
}

}  // namespace

WholeLoops& whole_loops() {
  static WholeLoops loops;
  return loops;
}

bool tests_hold(const std::uint32_t* shape, const std::int64_t* values) {
  const Announcement all(shape, values);
  for (std::uint32_t i = 0; i < all.loops; ++i)
    if (all.again[i] < 0 || all.again[i] >= kFar) return false;
  for (std::uint32_t i = 0; i < all.tests; ++i) {
    const std::int64_t* const forms = all.operand + std::size_t{2} * i * (all.loops + 1);
    const unsigned bits = all.test[i] & ((1u << kTestShift) - 1);
    if (bits < 2) return false;
    const auto most = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
    const std::int64_t least = -most - 1;
    const auto test = static_cast<LoopTest>(all.test[i] >> kTestShift);
    const bool has_b = test != LoopTest::kFits && test != LoopTest::kFitsUnsigned;
    const Range a = range_of(forms, all);
    const Range b = has_b ? range_of(forms + all.loops + 1, all) : a;
    if (!a.within(least, most) || !b.within(least, most) || !holds(test, a, b, least, most))
      return false;
  }
  return true;
}

bool read_loop(const std::uint32_t* shape, const std::int64_t* values, const std::uint64_t* sites,
               std::uintptr_t own_begin, std::uintptr_t own_end, AnnouncedLoop& loop) {
  const Announcement all(shape, values);
  loop.num_accesses = all.accesses;
  loop.steps = 0;
  // In which loops each is, and as which of an iteration's accesses.
  std::array<std::uint32_t, kMostLoops> path{};
  std::array<std::uint64_t, kMostLoops> position{}, before{}, of_iteration{};
  std::array<std::array<std::uint32_t, kMostLoops>, kMostAccesses> loops_of;
  unsigned depth = 0;
  std::uint64_t rounds = 1;  // of the innermost loop in all
  for (std::uint32_t i = 0; i < all.steps; ++i) {
    const std::uint32_t number = all.step[i] & callouts::kStepMask;
    switch (all.step[i] & ~callouts::kStepMask) {
      case kStepBegin:
        before[depth] = depth == 0 ? 0 : before[depth - 1] + position[depth - 1];
        position[depth] = 0;
        path[depth++] = number;
        rounds *= static_cast<std::uint64_t>(all.again[number]) + 1;
        if (rounds >= static_cast<std::uint64_t>(kFar)) return false;
        break;
      case kStepEnd: {
        --depth;
        const std::uint64_t count = static_cast<std::uint64_t>(all.again[number]) + 1;
        of_iteration[number] = position[depth];
        rounds /= count;
        (depth == 0 ? loop.steps : position[depth - 1]) += position[depth] * count;
        break;
      }
      default: {
        AccessOfLoop& access = loop.access[number];
        const std::uint32_t word = all.word[number];
        const std::int64_t* const form = all.address + number * (all.loops + 1);
        access.pc = __atomic_load_n(sites + number, __ATOMIC_RELAXED);
        if (access.pc == 0) return false;
        access.bytes = word & kSizeMask;
        access.write = (word & kWrites) != 0;
        access.first = static_cast<std::uintptr_t>(form[0]);
        access.num_dimensions = depth;
        access.count = rounds;
        loops_of[number] = path;
        const std::int64_t alignment = std::int64_t{1} << (word >> kAlignmentShift);
        std::int64_t misaligned = form[0] & (alignment - 1);
        Wide low = access.first, high = low + access.bytes;
        for (unsigned d = 0; d < depth; ++d) {
          const std::int64_t stride = form[1 + path[d]];
          const std::int64_t again = all.again[path[d]];
          if (again != 0) {
            if (stride <= -kFar || stride >= kFar) return false;
            misaligned |= stride & (alignment - 1);
            (stride < 0 ? low : high) += Wide{stride} * again;
          }
          access.dimensions[d] = {stride, static_cast<std::uint64_t>(again) + 1, 0};
        }
        if (misaligned != 0 || low < 0 || high >= Wide{1} << 63) return false;
        access.begin = static_cast<std::uintptr_t>(low);
        access.end = static_cast<std::uintptr_t>(high);
        access.own = access.begin >= own_begin && access.end <= own_end;
        if (!access.own && access.end > own_begin && access.begin < own_end) return false;
        access.first_step = before[depth - 1] + position[depth - 1] + 1;
        if (!access.own) ++position[depth - 1];
      }
    }
  }
  for (std::uint32_t i = 0; i < all.accesses; ++i)
    for (unsigned d = 0; d < loop.access[i].num_dimensions; ++d)
      loop.access[i].dimensions[d].steps = of_iteration[loops_of[i][d]];
  return true;
}

Stretches AccessOfLoop::stretches() const {
  Stretches all;
  all.begin = begin;
  all.end = end;
  all.bytes = bytes;
  std::array<Stretches::Row, callouts::kMostLoops> rows;  // by stride
  unsigned n = 0;
  for (unsigned i = 0; i < num_dimensions; ++i) {
    const Dimension& d = dimensions[i];
    if (d.stride == 0 || d.count == 1) continue;
    const Stretches::Row row{static_cast<std::uint64_t>(d.stride < 0 ? -d.stride : d.stride),
                             d.count};
    unsigned at = n++;
    for (; at > 0 && rows[at - 1].stride > row.stride; --at) rows[at] = rows[at - 1];
    rows[at] = row;
  }
  unsigned inner = 0;
  while (inner < n && rows[inner].stride == all.bytes) all.bytes *= rows[inner++].count;
  for (; inner < n; ++inner) all.rows[all.num_rows++] = rows[inner];
  return all;
}

bool Stretches::operator==(const Stretches& other) const {
  if (begin != other.begin || bytes != other.bytes || num_rows != other.num_rows) return false;
  for (unsigned i = 0; i < num_rows; ++i)
    if (rows[i].stride != other.rows[i].stride || rows[i].count != other.rows[i].count)
      return false;
  return true;
}

bool Stretches::may_overlap(std::uintptr_t at, std::size_t n) const {
  if (at >= end || at + n <= begin) return false;
  if (num_rows != 1 || at < begin) return true;
  const std::uint64_t within = (at - begin) % rows[0].stride;
  return within < bytes || within + n > rows[0].stride;
}

bool AccessOfLoop::has_same_places(const AccessOfLoop& other) const {
  if (first != other.first || bytes != other.bytes || num_dimensions != other.num_dimensions)
    return false;
  for (unsigned i = 0; i < num_dimensions; ++i)
    if (dimensions[i].stride != other.dimensions[i].stride ||
        dimensions[i].count != other.dimensions[i].count)
      return false;
  return true;
}

bool AccessOfLoop::may_overlap(const AccessOfLoop& other) const {
  if (end <= other.begin || other.end <= begin) return false;
  // Elements of one struct: all strides are multiples of the least, between whose multiples both have a place.
  std::uint64_t least = 0;
  for (const AccessOfLoop* access : {this, &other})
    for (unsigned i = 0; i < access->num_dimensions; ++i) {
      const std::int64_t stride = access->dimensions[i].stride;
      const auto length = static_cast<std::uint64_t>(stride < 0 ? -stride : stride);
      if (length != 0 && access->dimensions[i].count > 1 && (least == 0 || length < least))
        least = length;
    }
  if (least == 0) return true;
  for (const AccessOfLoop* access : {this, &other})
    for (unsigned i = 0; i < access->num_dimensions; ++i)
      if (access->dimensions[i].count > 1 &&
          access->dimensions[i].stride % static_cast<std::int64_t>(least) != 0)
        return true;
  const auto length = static_cast<std::int64_t>(least);
  const auto apart = static_cast<std::uint64_t>(
      (static_cast<std::int64_t>(other.first - first) % length + length) % length);
  return apart < bytes || apart + other.bytes > least;
}

}  // namespace attn_diag::host
