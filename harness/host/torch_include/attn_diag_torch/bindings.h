// Module definitions: compiled, so that what they name must exist, and never run.
#pragma once

#include <string>
#include <utility>

#ifndef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME attn_diag_extension
#endif

namespace pybind11 {

struct arg {
  explicit arg(const char*) {}
  template <class T>
  arg& operator=(T&&) {
    return *this;
  }
  arg& noconvert(bool = true) { return *this; }
  arg& none(bool = true) { return *this; }
};
struct gil_scoped_release {};
struct none {};
template <class... T>
struct call_guard {};

class module_ {
 public:
  template <class F, class... Extra>
  module_& def(const char*, F&&, const Extra&...) {
    return *this;
  }
  template <class F>
  module_& impl(const char*, F&&) {
    return *this;
  }
  module_& def(const char*) { return *this; }
  std::string& doc() { return x_doc; }

 private:
  std::string x_doc;
};
using module = module_;

}  // namespace pybind11
namespace py = pybind11;

#define ATTN_DIAG_TORCH_PASTE_(a, b) a##b
#define ATTN_DIAG_TORCH_PASTE(a, b) ATTN_DIAG_TORCH_PASTE_(a, b)
#define PYBIND11_MODULE(name, variable)               \
  [[maybe_unused]] static void ATTN_DIAG_TORCH_PASTE( \
      attn_diag_define_, name)([[maybe_unused]] ::pybind11::module_ & variable)
#define TORCH_LIBRARY(name, variable) \
  PYBIND11_MODULE(ATTN_DIAG_TORCH_PASTE(library_, name), variable)
#define TORCH_LIBRARY_FRAGMENT(name, variable) \
  PYBIND11_MODULE(ATTN_DIAG_TORCH_PASTE(fragment_, name), variable)
#define TORCH_LIBRARY_IMPL(name, key, variable) \
  PYBIND11_MODULE(ATTN_DIAG_TORCH_PASTE(name, ATTN_DIAG_TORCH_PASTE(_, key)), variable)
