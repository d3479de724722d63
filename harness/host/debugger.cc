// What a debugger asks for by name (tools/gdb/attn_diag.py). Always compiled with debug information.
#include <bit>
#include <string>

#include "harness/host/block_runner.h"
#include "harness/host/text.h"

namespace attn_diag::host {

std::string BlockReporter::threads_text() const {
  unsigned alive = 0;
  for (unsigned w = 0; w < x_words; ++w) alive += static_cast<unsigned>(std::popcount(x_alive[w]));
  const std::string waiting = waiting_list();
  return concat(where(), ", ", x_threads, " threads, of which ", x_threads - alive,
                " have ended\nruns:  ", thread_name(*x_current),
                "\nwaits: ", waiting.empty() ? "none" : waiting);
}

}  // namespace attn_diag::host

// Where the threads of the block that the calling thread runs are.
extern "C" __attribute__((visibility("default"))) const char* attn_diag_threads() {
  static thread_local std::string text;
  const auto* runner = attn_diag::host::BlockRunner::current();
  text = runner == nullptr ? "This thread runs no kernel." : runner->threads_text();
  return text.c_str();
}
