// Any lines "name=value" as what a file says about its case, and any value as a mask.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "attn_diag/harness/error.h"
#include "harness/files/said.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attn_diag;
  std::istringstream text(std::string(reinterpret_cast<const char*>(data), size));
  files::Settings settings;
  for (std::string line; std::getline(text, line);) {
    const std::size_t at = std::min(line.find('='), line.size());
    settings.emplace(line.substr(0, at), line.substr(std::min(at + 1, line.size())));
  }
  try {
    const files::Said said = files::what_is_said(settings, {});
    if (said.mask) files::mask_of(*said.mask, 5, 7);
  } catch (const Error&) {
  }
  return 0;
}
