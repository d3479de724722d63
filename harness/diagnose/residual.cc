#include "harness/diagnose/residual.h"

#include "attn_diag/harness/pattern.h"

namespace attn_diag::matching {

std::vector<std::string> residual_structure(const Evidence& evidence, const reference::Case& c,
                                            const Tolerance& tolerance, int threads) {
  std::vector<std::string> sentences;
  const Capture& capture = evidence.capture();
  for (const PatternStatement& statement :
       describe_pattern(collect_wrong_cells(capture, evidence.tensors().back(), tolerance, threads),
                        c.problem(), c.geometry()))
    if (statement.kind != StatementKind::kHint) sentences.push_back(statement.text);
  return sentences;
}

}  // namespace attn_diag::matching
