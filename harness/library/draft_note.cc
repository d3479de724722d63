#include "harness/library/draft_note.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <memory>

namespace attn_diag {

std::string draft_note(const Kernel& kernel) {
  const std::unique_ptr<void, int (*)(void*)> library(
      dlopen(kernel.library_path().c_str(), RTLD_LAZY | RTLD_NOLOAD), dlclose);
  if (library == nullptr) return "";
  const auto draft = reinterpret_cast<const int* (*)()>(dlsym(library.get(), "attn_diag_draft"));
  if (draft == nullptr) return "";
  const int guessed = draft()[0], unknown = draft()[1];
  return fmt::format(
      "The adapter is attn-diag adapt's draft, in which {} guessed and {} not known: it may be "
      "what is "
      "wrong. Read the head of it, then delete its ATTN_DIAG_DRAFT.",
      guessed == 1 ? "1 thing is" : fmt::format("{} things are", guessed),
      unknown == 1   ? "1 is"
      : unknown == 0 ? "none is"
                     : fmt::format("{} are", unknown));
}

}  // namespace attn_diag
