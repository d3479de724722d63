// Runs a part of a test in a process of its own, for what would change this one for good.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "harness/base/child_process.h"

namespace attn_diag::testing {

struct ChildResult : ProcessEnd {
  std::string output;  // what `work` returned, or "threw: ..."
};

inline ChildResult in_child(const std::function<std::string()>& work) {
  Pipe pipe;
  const pid_t child = fork_child([&] {
    std::string output;
    try {
      output = work();
    } catch (const std::exception& e) {
      output = std::string("threw: ") + e.what();
    }
    write_all(pipe.write_end(), output.data(), output.size());
  });
  pipe.close_write();
  ChildResult result;
  while (read_some(pipe.read_end(), result.output)) {
  }
  static_cast<ProcessEnd&>(result) = wait_for(child);
  return result;
}

}  // namespace attn_diag::testing
