#include "harness/host/async_copies.h"

#include <cstring>

#include "harness/host/values/recorder.h"

namespace attn_diag::host {

void land(const AsyncCopy& copy, bool waited) {
  const std::size_t read = copy.bytes - copy.zeros;
  if (read > 0) std::memcpy(copy.to, copy.from, read);
  std::memset(copy.to + read, 0, copy.zeros);
  note_copied(copy.to, copy.from, read, copy.at);
  note_cleared(copy.to + read, copy.zeros);
  note_landed(copy, waited);
}

void CopiesInFlight::commit(unsigned thread) {
  Queue& queue = x_queues[thread];
  queue.group_ends.push_back(queue.copies.size());
}

void CopiesInFlight::land(unsigned thread, std::size_t prior) {
  if (!x_arrivals.empty()) land_bound(thread);
  Queue& queue = x_queues[thread];
  if (queue.group_ends.size() <= prior) return;
  const std::size_t groups = queue.group_ends.size() - prior;
  const std::size_t landed = queue.group_ends[groups - 1];
  for (std::size_t i = 0; i < landed; ++i) host::land(queue.copies[i], true);
  queue.copies.erase(queue.copies.begin(),
                     queue.copies.begin() + static_cast<std::ptrdiff_t>(landed));
  queue.group_ends.erase(queue.group_ends.begin(),
                         queue.group_ends.begin() + static_cast<std::ptrdiff_t>(groups));
  for (std::size_t& end : queue.group_ends) end -= landed;
}

void CopiesInFlight::land(const void* barrier) {
  std::erase_if(x_bound, [&](const Bound& bound) {
    if (bound.barrier != barrier) return false;
    host::land(bound.copy, false);
    return true;
  });
}

void CopiesInFlight::land_bound(unsigned thread) {
  std::erase_if(x_bound, [&](const Bound& bound) {
    if (bound.thread != thread) return false;
    host::land(bound.copy, false);
    return true;
  });
}

void CopiesInFlight::arrive_after(unsigned thread, const void* mbarrier) {
  x_any = true;
  Queue& queue = x_queues[thread];
  for (const AsyncCopy& copy : queue.copies) x_bound.push_back({mbarrier, thread, copy});
  queue.copies.clear();
  for (std::size_t& end : queue.group_ends) end = 0;
  x_arrivals.push_back({mbarrier, thread});
}

unsigned CopiesInFlight::land_for(const void* mbarrier) {
  unsigned count = 0;
  std::erase_if(x_arrivals, [&](const Arrival& arrival) {
    if (arrival.mbarrier != mbarrier) return false;
    land_bound(arrival.thread);
    ++count;
    return true;
  });
  return count;
}

void CopiesInFlight::drop(const AsyncCopy& copy) {
  if (x_dropped.count++ > 0) return;
  x_dropped.file = copy.file;
  x_dropped.line = copy.line;
}

void CopiesInFlight::drop(unsigned thread) {
  Queue& queue = x_queues[thread];
  for (const AsyncCopy& copy : queue.copies) drop(copy);
  queue.copies.clear();
  queue.group_ends.clear();
}

void CopiesInFlight::drop_bound() {
  for (const Bound& bound : x_bound) drop(bound.copy);
  x_bound.clear();
  x_arrivals.clear();
}

}  // namespace attn_diag::host
