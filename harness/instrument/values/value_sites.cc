#include "harness/instrument/values/value_sites.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include <array>
#include <vector>

#include "attn_diag_host/stand_in_headers.h"
#include "harness/instrument/places.h"

namespace attn_diag::instrument {

using namespace llvm;

bool is_header_file(StringRef path) {
  return is_stand_in_header({path.data(), path.size()}) || path.substr(0, 5) == "/usr/";
}

namespace {

constexpr const char* kSiteName = "attn_diag.site";

std::string file_of(const DIScope& scope) {
  const StringRef file = scope.getFilename();
  if (file.substr(0, 1) == "/" || scope.getDirectory().empty()) return file.str();
  return (scope.getDirectory() + "/" + file).str();
}

// As a word: without what separates words.
std::string escaped(const std::string& path) {
  std::string out;
  for (const char c : path)
    if (StringRef(" ,:@=~%").contains(c))
      out.append("%").append(toHex(StringRef(&c, 1)));
    else
      out += c;
  return out;
}

struct Assignment {
  unsigned line;
  std::string file;
  std::string constant;  // "=1"; empty: what is computed
  bool operator==(const Assignment&) const = default;
};

// By variable; of the module that is compiled.
DenseMap<const DILocalVariable*, SmallVector<Assignment, 2>>& assignments() {
  static DenseMap<const DILocalVariable*, SmallVector<Assignment, 2>> lines;
  return lines;
}

SmallVector<Assignment, 2> assignments_of(const DILocalVariable& variable) {
  const auto found = assignments().find(&variable);
  if (found != assignments().end()) return found->second;
  if (variable.getArg() != 0) return {};
  return {{variable.getLine(), file_of(*variable.getScope()), ""}};
}

std::string constant_text(const Value* value) {
  const auto* const number = dyn_cast<ConstantFP>(value);
  if (number == nullptr || !(value->getType()->isFloatTy() || value->getType()->isDoubleTy()))
    return "";
  const double x = value->getType()->isFloatTy() ? number->getValueAPF().convertToFloat()
                                                 : number->getValueAPF().convertToDouble();
  return std::string("=").append(std::to_string(x));
}

}  // namespace

void note_assignments(const Function& function) {
  DenseMap<const Value*, const DILocalVariable*> variables;
  for (const BasicBlock& block : function)
    for (const Instruction& at : block)
      if (const auto* say = dyn_cast<DbgVariableIntrinsic>(&at))
        for (const Value* value : say->location_ops())
          if (isa<AllocaInst>(value)) variables[value] = say->getVariable();
  for (const BasicBlock& block : function)
    for (const Instruction& at : block) {
      const auto* const store = dyn_cast<StoreInst>(&at);
      if (store == nullptr) continue;
      const auto found = variables.find(getUnderlyingObject(store->getPointerOperand()));
      if (found == variables.end()) continue;
      const auto [file, line] = ValueSites::user_line(at.getDebugLoc());
      // The compiler's own, so that what nobody wrote shows.
      if (store->getMetadata(LLVMContext::MD_annotation) != nullptr) continue;
      // What a parameter is given stands at the call.
      if (line == 0 || isa<Argument>(store->getValueOperand())) continue;
      SmallVector<Assignment, 2>& known = assignments()[found->second];
      const Assignment one = {line, file, constant_text(store->getValueOperand())};
      if (!is_contained(known, one)) known.push_back(one);
    }
}

std::pair<std::string, unsigned> ValueSites::user_line(const DebugLoc& location) {
  const Place place = place_of(location, "");
  return {place.file, place.line};
}

std::string ValueSites::line_text(unsigned line, const std::string& file) const {
  return line_text(line, file, x_home);
}

std::string ValueSites::line_text(unsigned line, const std::string& file, const std::string& home) {
  std::string words = std::to_string(line);
  if (!file.empty() && file != home) words.append("~").append(escaped(file));
  return words;
}

ValueSites::ValueSites(Function& function, const DominatorTree& dominators, const LoopInfo& loops)
    : x_function(function), x_dominators(dominators), x_loops(loops), x_after(function) {
  if (const DISubprogram* program = function.getSubprogram()) x_home = file_of(*program);
  for (const BasicBlock& block : function)
    for (const Instruction& at : block)
      if (const auto* say = dyn_cast<DbgVariableIntrinsic>(&at)) {
        const DILocalVariable* const variable = say->getVariable();
        if (variable->getName().empty() || variable->getName() == "this" ||
            is_header_file(file_of(*variable->getScope())))
          continue;
        for (const Value* value : say->location_ops()) {
          if (isa<AllocaInst>(value))
            x_storage[value] = variable->getName().str();
          else if (!isa<Constant>(value))
            x_named[value].push_back(variable);
        }
      }
}

ValueSites::Place ValueSites::place_of(const DebugLoc& location, const std::string& home) {
  Place place;
  const DILocation* at = location.get();
  while (at != nullptr && at->getInlinedAt() != nullptr &&
         (at->getLine() == 0 || is_header_file(file_of(*at->getScope()))))
    at = at->getInlinedAt();
  if (at == nullptr) return place;
  place.file = file_of(*at->getScope());
  if (const DISubprogram* program = at->getScope()->getSubprogram())
    place.function = program->getName().str();
  place.line = at->getLine();
  place.column = at->getColumn();
  for (at = at->getInlinedAt(); at != nullptr; at = at->getInlinedAt())
    if (at->getLine() != 0 && !is_header_file(file_of(*at->getScope())))
      place.callers += line_text(at->getLine(), file_of(*at->getScope()), home) + ",";
  return place;
}

std::string ValueSites::variable_of(const Value* value) const {
  const auto found = x_named.find(value);
  return found == x_named.end() ? "" : found->second.back()->getName().str();
}

std::string ValueSites::name_of_address(const Value* address, int depth) const {
  constexpr int kDeepest = 24;
  if (depth > kDeepest) return "";
  if (const std::string name = variable_of(address); !name.empty()) return name;
  if (const auto found = x_storage.find(address); found != x_storage.end()) return found->second;
  if (const auto* global = dyn_cast<GlobalVariable>(address)) {
    SmallVector<DIGlobalVariableExpression*, 1> say;
    global->getDebugInfo(say);
    if (!say.empty()) return say.front()->getVariable()->getName().str();
    return demangle(global->getName().str());
  }
  if (const auto* argument = dyn_cast<Argument>(address)) return argument->getName().str();
  if (const auto* step = dyn_cast<GEPOperator>(address))
    return name_of_address(step->getPointerOperand(), depth + 1);
  if (const auto* cast = dyn_cast<BitCastOperator>(address))
    return name_of_address(cast->getOperand(0), depth + 1);
  if (const auto* load = dyn_cast<LoadInst>(address))
    return name_of_address(load->getPointerOperand(), depth + 1);
  if (const auto* choice = dyn_cast<SelectInst>(address))
    return name_of_address(choice->getTrueValue(), depth + 1);
  if (const auto* merge = dyn_cast<PHINode>(address))
    for (const Value* value : merge->incoming_values())
      if (value != address)
        if (const std::string name = name_of_address(value, depth + 8); !name.empty()) return name;
  if (const auto* cast = dyn_cast<IntToPtrInst>(address))
    return name_of_address(cast->getOperand(0), depth + 1);
  return "";
}

// Which parts of the index of a block, and whether that of a thread, a value is made of: "yt".
std::string ValueSites::sources_of(const Value* value) const {
  constexpr std::size_t kMost = 256;
  std::vector<const Value*> reached = {value};
  SmallPtrSet<const Value*, 32> seen;
  bool block[3] = {false, false, false}, thread = false;
  for (std::size_t i = 0; i < reached.size() && reached.size() < kMost; ++i) {
    const auto* const made = dyn_cast<Instruction>(reached[i]);
    if (made == nullptr) continue;
    if (const auto* load = dyn_cast<LoadInst>(made)) {
      APInt offset(64, 0);
      const Value* const base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(
          made->getModule()->getDataLayout(), offset, true);
      const StringRef name = base->getName();
      if (name.contains("blockIdx") && offset.getZExtValue() / 4 < 3)
        block[offset.getZExtValue() / 4] = true;
      thread = thread || name.contains("threadIdx");
      continue;
    }
    for (const Value* operand : made->operands())
      if (!isa<Constant>(operand) && !isa<BasicBlock>(operand) && seen.insert(operand).second)
        reached.push_back(operand);
  }
  std::string words;
  for (int i = 0; i < 3; ++i)
    if (block[i]) words += "xyz"[i];
  return words + (thread ? "t" : "");
}

// The variables of the source that a value is made of, nearest first: "n@30:t,kv_start@24:,"; `deep`: also those that these
// are made of.
std::string ValueSites::uses_of(const Value* value, bool deep, char separator) const {
  constexpr std::size_t kMost = 96;
  std::vector<const Value*> reached = {value};
  SmallPtrSet<const Value*, 32> seen;
  std::string words;
  SmallPtrSet<const DILocalVariable*, 8> told;
  for (std::size_t i = 0; i < reached.size() && reached.size() < kMost; ++i) {
    const auto* const made = dyn_cast<Instruction>(reached[i]);
    if (made == nullptr) continue;
    bool named = false;
    if (const auto known = x_named.find(made); i > 0 && known != x_named.end())
      for (const DILocalVariable* variable : known->second) {
        named = true;
        if (!told.insert(variable).second) continue;
        std::string sources;
        if (deep) sources.append(":").append(sources_of(made));
        for (const Assignment& one : assignments_of(*variable))
          words.append(variable->getName().str())
              .append("@")
              .append(line_text(one.line, one.file))
              .append(one.constant)
              .append(sources) += separator;
      }
    if ((named && !deep) || isa<LoadInst>(made) || isa<CallBase>(made)) {
      // An element of an array in memory.
      if (const auto* load = dyn_cast<LoadInst>(made); load != nullptr && !named && i > 0)
        if (const std::string name = name_of_address(load->getPointerOperand()); !name.empty()) {
          const Place place = place_of(load->getDebugLoc(), x_home);
          if (place.line != 0)
            words.append(name)
                .append("@")
                .append(line_text(place.line, place.file))
                .append(deep ? ":" : "") += separator;
        }
      // An index that was read is made of where it was read, as a page that a table names.
      const auto* const table = dyn_cast<LoadInst>(made);
      const bool is_index = deep && i > 0 && table != nullptr && table->getType()->isIntegerTy();
      if (!is_index && (!isa<CallBase>(made) || named)) continue;
    }
    for (const Value* operand : made->operands())
      if (!isa<Constant>(operand) && !isa<BasicBlock>(operand) && seen.insert(operand).second)
        reached.push_back(operand);
  }
  return words;
}

// The branches on which the block depends, directly or by others: control dependence (Ferrante, Ottenstein and Warren, "The
// program dependence graph and its use in optimization", 1987), the nearest first.
std::string ValueSites::conditions_of(const BasicBlock* block) {
  if (const auto found = x_conditions.find(block); found != x_conditions.end())
    return found->second;
  std::string words;
  std::vector<const BasicBlock*> pending = {block};
  SmallPtrSet<const BasicBlock*, 8> seen;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const auto* node = x_dominators.getNode(pending[i]);
    for (bool self = true; node != nullptr; node = node->getIDom(), self = false) {
      const BasicBlock* const above = node->getBlock();
      const auto* const branch = dyn_cast<BranchInst>(above->getTerminator());
      if (branch == nullptr || !branch->isConditional() ||
          (self && i == 0 && !x_loops.isLoopHeader(above)))
        continue;
      if (!self && x_after.dominates(pending[i], above)) continue;
      const bool decides = x_after.dominates(pending[i], branch->getSuccessor(0)) !=
                           x_after.dominates(pending[i], branch->getSuccessor(1));
      if (!decides || !seen.insert(above).second) continue;
      pending.push_back(above);
      const Loop* const loop = x_loops.getLoopFor(above);
      const bool leaves = loop != nullptr && (!loop->contains(branch->getSuccessor(0)) ||
                                              !loop->contains(branch->getSuccessor(1)));
      DebugLoc where = branch->getDebugLoc();
      if (const auto* test = dyn_cast<Instruction>(branch->getCondition()))
        // What `a && b` of a loop comes to has line 0; its branch has that of the loop.
        if (test->getDebugLoc() && test->getDebugLoc().getLine() != 0) where = test->getDebugLoc();
      const Place place = place_of(where, x_home);
      if (place.line != 0)
        words += (leaves ? "loop " : "if ") + line_text(place.line, place.file) + " " +
                 uses_of(branch->getCondition(), true, ' ') + ",";
    }
  }
  return x_conditions[block] = words;
}

Constant* ValueSites::text(const std::string& words) {
  Module& module = *x_function.getParent();
  const std::string name = "attn_diag.text." + words;
  GlobalVariable* kept = module.getNamedGlobal(name);
  if (kept == nullptr) {
    Constant* const data = ConstantDataArray::getString(module.getContext(), words);
    kept =
        new GlobalVariable(module, data->getType(), true, GlobalValue::PrivateLinkage, data, name);
  }
  return ConstantExpr::getPointerCast(kept,
                                      PointerType::getUnqual(Type::getInt8Ty(module.getContext())));
}

GlobalVariable* ValueSites::make(value_callouts::Op op, const Place& place,
                                 const std::string& variable, const std::string& conditions,
                                 const std::string& uses) {
  Module& module = *x_function.getParent();
  auto* const word = Type::getInt32Ty(module.getContext());
  const std::array<Constant*, 12> members = {
      ConstantInt::get(word, 0),
      ConstantInt::get(word, static_cast<std::uint32_t>(op)),
      ConstantInt::get(word, place.line),
      ConstantInt::get(word, place.column),
      text(place.file),
      text(place.function),
      text(variable),
      text(conditions),
      text(uses),
      text(place.callers),
      text(x_home),
      ConstantInt::get(word, x_function.hasFnAttribute(kOfHost) ? 1 : 0)};
  Constant* const data = ConstantStruct::getAnon(members);
  return new GlobalVariable(module, data->getType(), false, GlobalValue::PrivateLinkage, data,
                            kSiteName);
}

bool is_site(const GlobalVariable& global) { return global.getName().startswith(kSiteName); }

GlobalVariable* ValueSites::site(const Instruction& at, value_callouts::Op op,
                                 const Value* address) {
  const std::string variable = address == nullptr ? variable_of(&at) : name_of_address(address);
  return make(op, place_of(place_near(at), x_home), variable, conditions_of(at.getParent()),
              address == nullptr ? uses_of(&at, false, ',') : uses_of(address, true, ','));
}

GlobalVariable* ValueSites::site_of_choice(const Instruction& at, const Value* condition) {
  Place place = place_of(place_near(at), x_home);
  std::string uses;
  if (const auto* test = dyn_cast_or_null<Instruction>(condition)) {
    const Place there = place_of(test->getDebugLoc(), x_home);
    if (there.line != 0) place = there;
    uses = uses_of(condition, true, ',');
  }
  return make(value_callouts::Op::kPick, place, variable_of(&at), conditions_of(at.getParent()),
              uses);
}

}  // namespace attn_diag::instrument
