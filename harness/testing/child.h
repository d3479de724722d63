// Runs a part of a test in a process of its own, for what would change this one for good.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>

namespace attn_diag::testing {

struct ChildResult {
  std::string output;  // what `work` returned, or "threw: ..."
  int status = 0;      // as waitpid gives it
};

inline ChildResult in_child(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return {"no pipe", -1};
  const pid_t child = fork();
  if (child == 0) {
    std::string output;
    try {
      output = work();
    } catch (const std::exception& e) {
      output = std::string("threw: ") + e.what();
    }
    const bool written =
        write(ends[1], output.data(), output.size()) == static_cast<ssize_t>(output.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  ChildResult result;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    result.output.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  waitpid(child, &result.status, 0);
  return result;
}

}  // namespace attn_diag::testing
