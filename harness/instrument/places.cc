#include "harness/instrument/places.h"

#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/DebugInfoMetadata.h>

namespace attn_diag::instrument {

using namespace llvm;

DebugLoc place_near(const Instruction& at) {
  const DebugLoc& own = at.getDebugLoc();
  if (!own || own.getLine() != 0) return own;
  constexpr int kBlocks = 4;
  const Instruction* before = at.getPrevNode();
  const BasicBlock* block = at.getParent();
  for (int i = 0; i < kBlocks; ++i) {
    for (; before != nullptr; before = before->getPrevNode()) {
      const DebugLoc& place = before->getDebugLoc();
      if (place && place.getLine() != 0 && place.getInlinedAt() == own.getInlinedAt()) return place;
    }
    const auto from = pred_begin(block);
    if (from == pred_end(block)) break;
    block = *from;
    before = block->getTerminator();
  }
  return own;
}

}  // namespace attn_diag::instrument
