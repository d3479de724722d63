// Streams and events. Handles are numbers that are never used twice.
#include "attn_diag_host/stream_api.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "harness/host/last_error.h"
#include "harness/host/text.h"

namespace {

using attn_diag::host::concat;
using attn_diag::host::refuse;
using EventClock = std::chrono::steady_clock;

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

struct Stream {
  unsigned flags = 0;
  int priority = 0;
};
struct Event {
  bool timed = true;
  std::optional<EventClock::time_point> recorded;
};

// Objects behind handles.
template <class Handle, class Object>
class Handles {
 public:
  Handle add(const Object& object) {
    const std::lock_guard lock(x_mutex);
    x_last += 16;  // clear of the handles that are constants
    x_objects[x_last] = object;
    return reinterpret_cast<Handle>(x_last);
  }
  bool remove(Handle handle) {
    const std::lock_guard lock(x_mutex);
    return x_objects.erase(reinterpret_cast<std::uintptr_t>(handle)) != 0;
  }
  std::optional<Object> find(Handle handle) {
    const std::lock_guard lock(x_mutex);
    const auto found = x_objects.find(reinterpret_cast<std::uintptr_t>(handle));
    if (found == x_objects.end()) return std::nullopt;
    return found->second;
  }
  bool replace(Handle handle, const Object& object) {
    const std::lock_guard lock(x_mutex);
    const auto found = x_objects.find(reinterpret_cast<std::uintptr_t>(handle));
    if (found != x_objects.end()) found->second = object;
    return found != x_objects.end();
  }

 private:
  std::mutex x_mutex;
  std::map<std::uintptr_t, Object> x_objects;
  std::uintptr_t x_last = 0x1000;
};

Handles<cudaStream_t, Stream>& streams() {
  static auto* const handles = new Handles<cudaStream_t, Stream>;
  return *handles;
}
Handles<cudaEvent_t, Event>& events() {
  static auto* const handles = new Handles<cudaEvent_t, Event>;
  return *handles;
}

std::optional<Stream> find(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
    return Stream{};
  return streams().find(stream);
}

cudaError_t no_stream(const char* call) {
  return refuse(cudaErrorInvalidResourceHandle, call,
                "the stream was never created, or is destroyed");
}

cudaError_t no_event(const char* call) {
  return refuse(cudaErrorInvalidResourceHandle, call,
                "the event was never created, or is destroyed");
}

cudaError_t check(const char* call, cudaStream_t stream) {
  return find(stream) ? cudaSuccess : no_stream(call);
}

cudaError_t no_graphs(const char* call) {
  return refuse(cudaErrorNotSupported, call,
                "the host executor has no CUDA graphs; make the same calls without capturing them");
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = streams().add({});
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, kLeastPriority);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (flags > cudaStreamNonBlocking)
    return refuse(
        cudaErrorInvalidValue, "cudaStreamCreateWithFlags",
        concat("the flags ", flags, " are neither cudaStreamDefault nor cudaStreamNonBlocking"));
  // CUDA clamps priorities that it does not have.
  const int nearest = priority > kLeastPriority      ? kLeastPriority
                      : priority < kGreatestPriority ? kGreatestPriority
                                                     : priority;
  *stream = streams().add({flags, nearest});
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return streams().remove(stream) ? cudaSuccess : no_stream("cudaStreamDestroy");
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return check("cudaStreamSynchronize", stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return check("cudaStreamQuery", stream); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (!events().find(event)) return no_event("cudaStreamWaitEvent");
  return check("cudaStreamWaitEvent", stream);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  const auto found = find(stream);
  if (!found) return no_stream("cudaStreamGetFlags");
  *flags = found->flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  const auto found = find(stream);
  if (!found) return no_stream("cudaStreamGetPriority");
  *priority = found->priority;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  const cudaError_t error = check("cudaLaunchHostFunc", stream);
  if (error == cudaSuccess) function(data);
  return error;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  const cudaError_t error = check("cudaStreamAddCallback", stream);
  if (error == cudaSuccess) callback(stream, cudaSuccess, data);
  return error;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = events().add({(flags & cudaEventDisableTiming) == 0, std::nullopt});
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return events().remove(event) ? cudaSuccess : no_event("cudaEventDestroy");
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  auto found = events().find(event);
  if (!found) return no_event("cudaEventRecord");
  found->recorded = EventClock::now();
  events().replace(event, *found);
  return check("cudaEventRecord", stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return events().find(event) ? cudaSuccess : no_event("cudaEventSynchronize");
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return events().find(event) ? cudaSuccess : no_event("cudaEventQuery");
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const auto first = events().find(start), last = events().find(end);
  if (!first || !last) return no_event("cudaEventElapsedTime");
  if (!first->timed || !last->timed)
    return refuse(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime",
                  "an event was created with cudaEventDisableTiming");
  if (!first->recorded || !last->recorded)
    return refuse(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime",
                  "an event was never recorded");
  *milliseconds =
      std::chrono::duration<float, std::milli>(*last->recorded - *first->recorded).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return no_graphs("cudaStreamBeginCapture");
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*) {
  return no_graphs("cudaStreamEndCapture");
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return check("cudaStreamIsCapturing", stream);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long) {
  return no_graphs("cudaGraphInstantiate");
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return no_graphs("cudaGraphLaunch"); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return no_graphs("cudaGraphExecDestroy"); }
cudaError_t cudaGraphDestroy(cudaGraph_t) { return no_graphs("cudaGraphDestroy"); }
