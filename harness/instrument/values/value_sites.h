// What the source says of an instruction: its line, the variable, the conditions and indices around it.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Instructions.h>

#include <string>
#include <utility>

#include "attn_diag/harness/host/value_callouts.h"

namespace attn_diag::instrument {

// Whether the file is one of the stand-in CUDA headers or of the C++ library, which no user wrote.
bool is_header_file(llvm::StringRef path);

// Where variables of the source are assigned to, before they become registers: user's lines by variable.
void note_assignments(const llvm::Function& function);

// The attribute of functions that run on the host.
inline constexpr const char* kOfHost = "attn-diag-of-host";

// Whether it is one that ValueSites made.
bool is_site(const llvm::GlobalVariable& global);

class ValueSites {
 public:
  ValueSites(llvm::Function& function, const llvm::DominatorTree& dominators,
             const llvm::LoopInfo& loops);

  // File and line of the user's source that code belongs to; 0: none.
  static std::pair<std::string, unsigned> user_line(const llvm::DebugLoc& location);

  // A constant that describes `at`; `address`: of a load or store, else null.
  llvm::GlobalVariable* site(const llvm::Instruction& at, value_callouts::Op op,
                             const llvm::Value* address);
  // For a number that was chosen: the place of the condition.
  llvm::GlobalVariable* site_of_choice(const llvm::Instruction& at, const llvm::Value* condition);

 private:
  struct Place {
    std::string file, function, callers;
    unsigned line = 0, column = 0;
  };
  // `home`: as in value_callouts::Site.
  static Place place_of(const llvm::DebugLoc& location, const std::string& home);
  std::string line_text(unsigned line, const std::string& file) const;
  static std::string line_text(unsigned line, const std::string& file, const std::string& home);
  std::string variable_of(const llvm::Value* value) const;
  std::string name_of_address(const llvm::Value* address, int depth = 0) const;
  std::string uses_of(const llvm::Value* value, bool deep, char separator) const;
  std::string sources_of(const llvm::Value* value) const;
  std::string conditions_of(const llvm::BasicBlock* block);
  llvm::GlobalVariable* make(value_callouts::Op op, const Place& place, const std::string& variable,
                             const std::string& conditions, const std::string& uses);
  llvm::Constant* text(const std::string& words);

  llvm::Function& x_function;
  const llvm::DominatorTree& x_dominators;
  const llvm::LoopInfo& x_loops;
  std::string x_home;
  llvm::PostDominatorTree x_after;
  // By value the variables of the source that hold it; by variable in memory its name.
  llvm::DenseMap<const llvm::Value*, llvm::SmallVector<const llvm::DILocalVariable*, 1>> x_named;
  llvm::DenseMap<const llvm::Value*, std::string> x_storage;
  llvm::DenseMap<const llvm::BasicBlock*, std::string> x_conditions;
};

}  // namespace attn_diag::instrument
