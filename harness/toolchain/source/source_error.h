// What the source pass cannot translate, in the words of a compiler.
#pragma once

#include <stdexcept>
#include <string>

namespace attn_diag::source {

struct Diagnostic {
  std::string file;
  int line = 0;
  std::string message;  // one line: what is wrong, what to do
};

class SourceError : public std::runtime_error {
 public:
  SourceError(std::string file, int line, const std::string& message)
      : std::runtime_error(message), x_where{std::move(file), line, message} {}
  const Diagnostic& where() const { return x_where; }

 private:
  Diagnostic x_where;
};

}  // namespace attn_diag::source
