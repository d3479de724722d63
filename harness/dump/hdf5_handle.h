// HDF5 behind RAII and exceptions. Every call goes through check(), which throws Error with the
// library's own innermost reason; the library prints nothing itself.
//
// libhdf5 is built thread-safe on some systems only: whoever calls it holds an Hdf5Session.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "attn_diag/kernels/problem.h"

namespace attn_diag {

// Keeps the library from printing errors itself. Where it is built thread-safe that is a matter of
// each thread, so a thread that takes part in another's session needs its own.
class Hdf5Quiet {
 public:
  Hdf5Quiet();
  ~Hdf5Quiet();
  Hdf5Quiet(const Hdf5Quiet&) = delete;
  Hdf5Quiet& operator=(const Hdf5Quiet&) = delete;

 private:
  H5E_auto2_t x_printer = nullptr;
  void* x_printer_data = nullptr;
};

// Exclusive use of the library, silent. Not recursive.
class Hdf5Session {
 public:
  Hdf5Session();

 private:
  std::lock_guard<std::mutex> x_lock;
  Hdf5Quiet x_quiet;
};

// What the library says about the call that just failed: the innermost description.
std::string hdf5_reason();

[[noreturn]] void throw_hdf5(const std::string& doing);

// Passes a result through; negative means failure. `doing` completes "could not ...".
template <class T>
T check(T result, const char* doing) {
  if (result < 0) throw_hdf5(doing);
  return result;
}
template <class T>
T check(T result, const std::string& doing) {
  return check(result, doing.c_str());
}

// An identifier that is closed by its own function.
class Hdf5Id {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Id() = default;
  Hdf5Id(hid_t id, Close closer) : x_id(id), x_close(closer) {}
  Hdf5Id(Hdf5Id&& other) noexcept
      : x_id(std::exchange(other.x_id, H5I_INVALID_HID)), x_close(other.x_close) {}
  Hdf5Id& operator=(Hdf5Id&& other) noexcept {
    std::swap(x_id, other.x_id);
    std::swap(x_close, other.x_close);
    return *this;
  }
  ~Hdf5Id() {
    if (x_id >= 0) x_close(x_id);
  }
  operator hid_t() const { return x_id; }
  // Closes now and throws if that fails: closing a file is what writes its last bytes.
  void close(const std::string& doing) {
    check(x_close(std::exchange(x_id, H5I_INVALID_HID)), doing);
  }

 private:
  hid_t x_id = H5I_INVALID_HID;
  Close x_close = nullptr;
};

Hdf5Id create_group(hid_t parent, const std::string& name);
Hdf5Id open_group(hid_t parent, const std::string& name);
// False also where a group on the way is missing.
bool link_exists(hid_t parent, const std::string& path);

// Our element types in a file: little-endian IEEE floats of 16, 32 and 64 bits; bf16 a 16-bit float
// with 8 exponent bits. In memory they are the same, so that nothing is converted.
Hdf5Id file_type(DType dtype);
// "32-bit integer" and the like, for messages.
std::string describe_type(hid_t dataset);

std::vector<std::int64_t> dataset_shape(hid_t dataset);

// Attributes. Strings are variable-length UTF-8.
void write_attribute(hid_t object, const char* name, const std::string& value);
void write_attribute(hid_t object, const char* name, std::int64_t value);
void write_attribute(hid_t object, const char* name, std::uint64_t value);
void write_attribute(hid_t object, const char* name, double value);
void write_attribute(hid_t object, const char* name, const std::vector<std::int64_t>& values);
void write_attribute(hid_t object, const char* name, const std::vector<std::string>& values);

}  // namespace attn_diag
