#include "harness/toolchain/adapt/include_line.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "harness/base/printable.h"
#include "harness/toolchain/adapt/code.h"

namespace attn_diag::adapt {
namespace {

namespace fs = std::filesystem;

std::string include_path(const AdaptRequest& request) {
  const fs::path source = whole_path(request.source);
  const fs::path from = request.output_directory.empty() ? source.parent_path()
                                                         : whole_path(request.output_directory);
  const fs::path relative = source.lexically_relative(from);
  return relative.empty() ? source.string() : relative.string();
}

}  // namespace

std::string include_line(const AdaptRequest& request, bool& holds_source) {
  const std::string path = include_path(request);
  if (path.find_first_of("\"\n\r") == std::string::npos)
    return fmt::format("#include \"{}\"\n", path);
  const std::string absolute = whole_path(request.source).string();
  if (absolute.find_first_of(">\n\r") == std::string::npos)
    return fmt::format("#include <{}>\n", absolute);
  holds_source = true;
  std::ostringstream text;
  text << std::ifstream(request.source, std::ios::binary).rdbuf();
  return fmt::format(
      "// The text of {}, whose name #include cannot spell; what it includes itself has to be "
      "found by -I.\n{}\n",
      one_line(absolute), text.str());
}

}  // namespace attn_diag::adapt
