#include "attn_diag/reference/reference.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "attn_diag/reference/sampled_rows.h"
#include "reference/bounds.h"
#include "reference/plan.h"
#include "reference/values.h"

namespace attn_diag::reference {
namespace {

std::atomic<std::int64_t> rows_so_far{0};

struct KvData {
  KvHead values;
  KvMagnitudes magnitudes;  // only where bounds are wanted
};

// Widened k and v, made when the first block of a kv head needs them, dropped with the last.
class KvCache {
 public:
  explicit KvCache(const Plan& plan)
      : plan_(plan), slots_(static_cast<std::size_t>(plan.problem.batch * plan.problem.kv_heads)) {}

  std::shared_ptr<const KvData> get(std::int32_t batch, std::int32_t kv_head) {
    Slot& slot = slots_[static_cast<std::size_t>(batch * plan_.problem.kv_heads + kv_head)];
    const std::lock_guard lock(slot.mutex);
    std::shared_ptr<const KvData> kv = slot.kv.lock();
    if (kv == nullptr) {
      const auto made = std::make_shared<KvData>();
      made->values = widen_kv_head(plan_, batch, kv_head);
      if (plan_.options.bounds) made->magnitudes = magnitudes(plan_, made->values);
      kv = made;
      slot.kv = kv;
    }
    return kv;
  }

 private:
  struct Slot {
    std::mutex mutex;
    std::weak_ptr<const KvData> kv;
  };
  const Plan& plan_;
  std::vector<Slot> slots_;
};

// Hands out row blocks in order of kv head, so that a thread reuses what it has widened.
class Work {
 public:
  explicit Work(const Plan& plan) : plan_(plan) {
    const Options& o = plan.options;
    blocks_per_head_ = (std::ssize(plan.queries) + plan.rows_per_block - 1) / plan.rows_per_block;
    heads_ = o.head_end - o.head_begin;
    size_ = std::int64_t{o.batch_end - o.batch_begin} * heads_ * blocks_per_head_;
  }

  std::int64_t size() const { return size_; }

  struct Item {
    std::int32_t batch, head, rows;
    const std::int32_t* queries;
  };
  // False when nothing is left.
  bool next(Item& item) {
    const std::int64_t i = next_.fetch_add(1);
    if (i >= size_) return false;
    const Options& o = plan_.options;
    const std::int64_t row_of_heads = i / blocks_per_head_;
    item.batch = o.batch_begin + static_cast<std::int32_t>(row_of_heads / heads_);
    item.head = o.head_begin + static_cast<std::int32_t>(row_of_heads % heads_);
    const std::int64_t first = i % blocks_per_head_ * plan_.rows_per_block;
    item.queries = plan_.queries.data() + first;
    item.rows = static_cast<std::int32_t>(
        std::min<std::int64_t>(plan_.rows_per_block, std::ssize(plan_.queries) - first));
    return true;
  }
  void stop() { next_ = size_; }

 private:
  const Plan& plan_;
  std::int64_t blocks_per_head_ = 0, heads_ = 0, size_ = 0;
  std::atomic<std::int64_t> next_{0};
};

void run_blocks(const Plan& plan, KvCache& cache, Work& work,
                const std::function<void(const SampledBlock&)>& visit) {
  const ErrorModel model(plan.arithmetic);
  BlockValues values;
  BlockBounds bounds;
  std::shared_ptr<const KvData> kv;
  std::int32_t kv_batch = -1, kv_head = -1;
  for (Work::Item item; work.next(item);) {
    const std::int32_t wanted = kv_head_of(plan.problem, item.head);
    if (kv == nullptr || kv_batch != item.batch || kv_head != wanted) {
      kv = nullptr;
      kv = cache.get(item.batch, wanted);
      kv_batch = item.batch;
      kv_head = wanted;
    }
    compute_values(plan, kv->values, item.batch, item.head, item.queries, item.rows, values);
    if (plan.options.bounds) compute_bounds(plan, model, kv->magnitudes, values, bounds);
    SampledBlock sampled{{item.batch, item.head, *item.queries, item.rows, {}, {}}, item.queries};
    RowBlock& block = sampled.block;
    for (const TensorInfo& t : kTensors) {
      if (!plan.wants(t.id)) continue;
      block.value[static_cast<std::size_t>(t.id)] = values[t.id];
      if (plan.options.bounds) block.bound[static_cast<std::size_t>(t.id)] = bounds[t.id];
    }
    visit(sampled);
    rows_so_far += item.rows;
  }
}

void for_each_block(const Plan& plan, const std::function<void(const SampledBlock&)>& visit) {
  KvCache cache(plan);
  Work work(plan);
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    try {
      run_blocks(plan, cache, work, visit);
    } catch (...) {
      work.stop();
      const std::lock_guard lock(mutex);
      if (failure == nullptr) failure = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  const std::int64_t helpers = std::min<std::int64_t>(plan.options.threads, work.size()) - 1;
  for (std::int64_t i = 0; i < helpers; ++i) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace

std::int64_t rows_computed() { return rows_so_far; }

void for_each_row_block(const Problem& problem, const Geometry& geometry,
                        const Arithmetic& arithmetic, const Inputs& inputs, const Options& options,
                        const std::function<void(const RowBlock&)>& visit) {
  for_each_block(make_plan(problem, geometry, arithmetic, inputs, options),
                 [&](const SampledBlock& sampled) { visit(sampled.block); });
}

void for_each_sampled_rows(const Problem& problem, const Geometry& geometry,
                           const Arithmetic& arithmetic, const Inputs& inputs,
                           const Options& options, const std::vector<std::int32_t>& queries,
                           const std::function<void(const SampledBlock&)>& visit) {
  for_each_block(make_plan(problem, geometry, arithmetic, inputs, options, queries), visit);
}

Tensors compute(const Problem& problem, const Geometry& geometry, const Arithmetic& arithmetic,
                const Inputs& inputs, const Options& options) {
  const Plan plan = make_plan(problem, geometry, arithmetic, inputs, options);
  const Options& o = plan.options;
  const std::int64_t heads = o.head_end - o.head_begin, queries = o.query_end - o.query_begin;
  const std::int64_t rows = (o.batch_end - o.batch_begin) * heads * queries;
  Tensors whole;
  for (const TensorInfo& t : kTensors) {
    if (!plan.wants(t.id)) continue;
    const auto cells = static_cast<std::size_t>(rows * plan.cells_per_row(t.id));
    whole.value[static_cast<std::size_t>(t.id)].resize(cells);
    if (o.bounds) whole.bound[static_cast<std::size_t>(t.id)].resize(cells);
  }
  for_each_row_block(problem, geometry, arithmetic, inputs, options, [&](const RowBlock& block) {
    const std::int64_t first =
        ((block.batch - o.batch_begin) * heads + block.head - o.head_begin) * queries +
        block.query_begin - o.query_begin;
    for (const TensorInfo& t : kTensors) {
      const auto i = static_cast<std::size_t>(t.id);
      const std::int64_t cells = plan.cells_per_row(t.id);
      if (block.value[i] != nullptr)
        std::copy_n(block.value[i], block.rows * cells, whole.value[i].data() + first * cells);
      if (block.bound[i] != nullptr)
        std::copy_n(block.bound[i], block.rows * cells, whole.bound[i].data() + first * cells);
    }
  });
  return whole;
}

}  // namespace attn_diag::reference
