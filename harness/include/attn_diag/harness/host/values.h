// Where the numbers of a launch come from: a graph of everything that was computed from the inputs.
//
// A watch build (x.watch.so) run under LaunchOptions::values records how each number that comes from q, k and v was
// made: loaded, multiplied, added, chosen, handed to another lane, summed by a tensor core. Launches then run on
// one worker, so that the graph is the same in every run.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attn_diag/harness/host/value_callouts.h"

namespace attn_diag::host {

using ValueOp = value_callouts::Op;

// A place in the source.
struct ValueSite {
  ValueOp op = ValueOp::kLoad;
  int line = 0, column = 0;
  std::string file, function;
  std::string variable;          // empty: nothing with a name
  std::string conditions, uses;  // as value_callouts::Site has them
  std::string callers;           // "57,60,": lines of the calls around it
  std::string home;
  bool ran = true;  // false: no thread of a watched block came there with a number from the inputs
  bool stored = true;  // of a store; false: no thread of a watched block came there at all
};

// A number. Operands are numbers of nodes, all less than its own; 0: there is none.
struct ValueNode {
  static constexpr std::uint32_t kInput = ~0u;

  std::uint32_t site = 0;
  std::uint32_t where =
      0;  // thread in its block, and 1024 times the block's number among all that ran
  // Element of an input: the buffer's number, from 1; the element in it; kInput. kProduct: the addend; the first pair
  // and the number of pairs in `products`. kPick: what was chosen; what was not.
  std::array<std::uint32_t, 3> operand{};
  float value = 0;  // of elements of 16 bits that were only moved: 0

  bool is_input() const { return operand[2] == kInput; }
};

// Where the element of an output buffer got its last value.
struct ValueOutput {
  std::uint32_t node = 0;     // 0: nothing that comes from the inputs, or never
  std::uint32_t block = ~0u;  // among all that ran; ~0: it was never stored to
  std::uint32_t site = 0;     // of the store; 0: by code that records nothing
};

// A number in memory that another store replaced before anybody read it.
struct ReplacedValue {
  std::uint32_t node = 0;  // the store that is lost
  std::uint32_t by = 0;    // the node that replaced it; 0: it comes from no input
  std::uint32_t site = 0;  // of the store that replaced it
};

// An element of an input that a mask kept from being loaded.
struct MaskedLoad {
  std::uint32_t site = 0, buffer = 0, element = 0, block = 0;  // buffer: from 1
};

// Something wrong at a place that makes no number.
struct ValueRemark {
  std::uint32_t site = 0;
  std::string text;  // "takes index 2 of a program, which is 0 in all of them"
};

// Two nodes that a product of matrices multiplies.
struct ValuePair {
  std::uint32_t left = 0, right = 0;
};

struct ValueGraph {
  std::vector<ValueSite> sites;  // 0 stands for none
  std::vector<ValueNode> nodes;  // 0 stands for none; a node of site 0 is a constant
  std::vector<ValuePair> products;
  std::vector<std::uint32_t> unwatched;  // nodes: loads of what blocks stored that are not watched
  std::vector<std::vector<ValueOutput>> outputs;  // by output buffer and element
  std::vector<bool> watched;                      // by block among all that ran; empty: all are
  // By input buffer and element, where not all blocks are watched: what another one loaded.
  std::vector<std::vector<bool>> loaded_elsewhere;
  // By block among all that ran, watched or not: the blocks whose results it read.
  std::vector<std::vector<std::uint32_t>> reads_of;
  std::vector<ReplacedValue> replaced;  // the first kMostReplaced
  static constexpr std::size_t kMostReplaced = 1 << 20;
  std::uint64_t stored_twice = 0;  // stores to an output that another block or thread had stored to
  std::uint64_t unseen = 0;        // loads of what code that records nothing had stored
  bool full = false;               // there were more nodes than max_nodes: the graph is cut off
  bool instrumented = false;       // some code recorded what it computed
  // A line made a block of numbers at once (Triton, NumPy, PyTorch): `where` has no thread, only the block.
  bool whole_blocks = false;
  std::vector<MaskedLoad> masked;     // of whole blocks
  std::vector<ValueRemark> remarks;   // ... the likeliest first
  std::vector<std::uint32_t> unread;  // ... sites of variables that are assigned and never read

  bool is_watched(std::uint32_t block) const {
    return watched.empty() || (block < watched.size() && watched[block]);
  }
  bool is_constant(std::uint32_t node) const { return nodes[node].site == 0; }
  const ValueSite& site_of(std::uint32_t node) const { return sites[nodes[node].site]; }
  // Of a product of matrices.
  std::span<const ValuePair> pairs_of(const ValueNode& product) const {
    return std::span(products).subspan(product.operand[1], product.operand[2]);
  }
};

struct ValueBuffer {
  const void* memory = nullptr;
  std::uint64_t bytes = 0;
  unsigned element_bytes = 4;
};

struct ValueOptions {
  std::vector<ValueBuffer> inputs, outputs;
  bool all_blocks = true;  // else those of `blocks`, by number among all that ran
  std::vector<std::uint32_t> blocks;
  std::uint64_t max_nodes = 16'000'000;  // 24 bytes each; at most 2^27
};

class ValueRecorder;

// For LaunchOptions::values.
[[gnu::visibility("default")]] std::shared_ptr<ValueRecorder> make_value_recorder(
    const ValueOptions& options);
// What was recorded so far; the recorder is empty afterwards.
[[gnu::visibility("default")]] ValueGraph take_graph(ValueRecorder& recorder);

}  // namespace attn_diag::host
