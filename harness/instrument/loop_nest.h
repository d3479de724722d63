// A loop and those within it, read for loops.h: what they access, what must hold for that, and how often they go round.
#pragma once

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/IntrinsicInst.h>

#include <array>
#include <cstdint>
#include <utility>

#include "attn_diag_host/callouts.h"
#include "harness/instrument/accesses.h"

namespace attn_diag::instrument {

using callouts::kMostLoops;
using callouts::LoopTest;

// base + sum of factor[loop] * iteration, all of one integer type and known before the nest; null: 0.
struct Form {
  const llvm::SCEV* base = nullptr;
  std::array<const llvm::SCEV*, kMostLoops> factor{};
};

struct Access {
  llvm::Instruction* at;
  std::uint32_t word;
  llvm::Value* pointer;
  llvm::Value* object;  // what the address is relative to
  Form offset;          // 64 bits
};

struct Test {
  LoopTest what;
  unsigned bits;
  Form a, b;
};

struct Nest {
  llvm::Loop* loop = nullptr;
  llvm::SmallVector<llvm::Loop*, kMostLoops> loops;
  llvm::SmallVector<const llvm::SCEV*, kMostLoops> again;
  llvm::SmallVector<Access, 16> accesses;
  llvm::SmallVector<Test, 16> tests;
  llvm::SmallVector<std::uint32_t, 64> steps;
  llvm::SmallVector<llvm::WithOverflowInst*, 16> overflows;
  llvm::MapVector<llvm::Value*, bool> decided;  // conditions: what they are once the tests hold
  llvm::SmallVector<std::pair<llvm::BranchInst*, bool>, 16> branches;  // and which way these go
};

// Whether it can be announced as a whole; what `nest` holds is right only then.
bool read_nest(llvm::Loop& loop, llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution,
               PrivateMemory& own, Nest& nest);

bool is_region_mark(const llvm::Instruction& at);

}  // namespace attn_diag::instrument
