// A copy of the user's sources in a folder of ours, from which edited libraries are built: the user's files stay as
// they are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/repair/edit.h"
#include "harness/repair/schema.h"
#include "harness/toolchain/build/build.h"
#include "harness/toolchain/build/scratch.h"

namespace attn_diag::repair {

class Workshop {
 public:
  // `request`: what the user's library was built by; `sources`: the files it was made from.
  Workshop(const build::BuildRequest& request, build::Settings settings,
           const std::vector<SourceFile>& sources);

  struct Built {
    bool ok = false;
    std::string library;
    std::string messages;  // of what went wrong
  };
  // Which of a library and its instrumented build.
  enum class Which { kPlain, kInstrumented, kBoth };

  // What a library is for: to be built and run soon, or to run as the user's does.
  enum class Speed { kSoon, kAsBuilt };

  // A library of these texts, one for each source. `definitions`: those of the edits that it holds; empty: it holds
  // none. `number` is that of the library, which no other has; libraries may be built at the same time.
  // `only`: the kernels that a library of edits is built for, as build::BuildRequest::only_kernels.
  Built build(int number, std::vector<std::string> texts, const std::string& definitions,
              Which which, Speed speed, const std::vector<std::string>& only = {}) const;
  // Compilers that a build of one library runs at the same time.
  int units() const {
    return static_cast<int>(x_request.sources.size()) + (x_request.adapter.empty() ? 0 : 1);
  }
  std::string library(int number, bool instrumented) const;
  void remove(int number) const;
  // Where all of it lies; it is removed in the end.
  std::string folder() const { return (x_folder / "").string(); }

 private:
  std::filesystem::path moved(int number, const std::filesystem::path& path) const;
  // The source that definitions are put behind: a unit, an edited one if there is any. texts.size(): no unit is edited
  // here at all.
  std::size_t for_definitions(const std::vector<std::string>& texts) const;

  build::BuildRequest x_request;
  build::Settings x_settings;
  std::vector<std::filesystem::path> x_sources;
  std::vector<std::string> x_texts;
  build::ScratchFolder x_folder;
};

}  // namespace attn_diag::repair
