// Keeps what a watch build tells of its numbers.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "attn_diag/harness/host/values.h"
#include "harness/host/values/copied_at.h"

namespace attn_diag::host {

// The number of a node; with kPacked, of a list of bytes that belong to several.
using Label = std::uint32_t;
inline constexpr Label kPacked = 1u << 27;
// A byte of memory: a label, and which byte of its number it is.
inline constexpr unsigned kPartShift = 28;
using Packed = std::array<std::uint32_t, 16>;

// The sites of libraries that are loaded.
void add_value_sites(value_callouts::Site* const* sites, std::size_t count);
void remove_value_sites(value_callouts::Site* const* sites);

class __attribute__((visibility("hidden"))) ValueRecorder {
 public:
  explicit ValueRecorder(const ValueOptions& options);

  // Whether the block that begins now is watched; counts it.
  void begin_launch();
  bool begin_block(std::uint64_t number);
  bool is_watched(std::uint32_t block) const {
    return x_options.all_blocks || (block < x_watched.size() && x_watched[block]);
  }
  void forget(const void* memory, std::size_t bytes);
  ValueGraph take();

  // Whether `at` is memory that blocks share.
  std::uint32_t block_number(std::uint64_t number) const {
    return x_launch_begin + static_cast<std::uint32_t>(number);
  }

  // As in value_callouts.h. `where`: as in ValueNode; `local`: whether the memory is of that thread
  // alone; `global`: whether other blocks may see it.
  // `local`: of the thread itself.
  Label load(value_callouts::Site& site, std::uint32_t where, const void* at, unsigned bytes,
             std::uint64_t bits, bool local = false);
  void store(value_callouts::Site& site, std::uint32_t where, const void* at, unsigned bytes,
             Label label, std::uint64_t bits, bool local = false);
  void note_global(value_callouts::Site& site, std::uint32_t block, const void* at, unsigned bytes,
                   bool is_store);
  void note_output(value_callouts::Site& site, std::uint32_t where, const void* at, unsigned bytes,
                   Label label);
  bool is_output(const void* at) const;
  bool is_input(const void* at) const { return find(x_options.inputs, at) >= 0; }
  Label compute(value_callouts::Site& site, std::uint32_t where, float result,
                const std::array<Label, 3>& labels, const std::array<float, 3>& numbers,
                unsigned count);
  Label pick(value_callouts::Site& site, std::uint32_t where, Label chosen, float number,
             Label other);
  Label convert(value_callouts::Site& site, std::uint32_t where, Label label, float result,
                unsigned bytes);
  // Nothing but an 8-bit code of an input is followed so.
  Label from_integer(value_callouts::Site& site, std::uint32_t where, Label label, float number,
                     unsigned bytes);
  // From now on the input is where its codes are.
  void note_coded(unsigned input, const void* codes, std::uint64_t count);
  Label receive(value_callouts::Site& site, std::uint32_t where, std::uint32_t source_thread,
                std::uint64_t bits);
  void offer(std::uint32_t thread, Label label, std::uint64_t bits);
  void atomic_add(value_callouts::Site& site, std::uint32_t where, void* at, Label label,
                  float number);

  // Operations on integers.
  Label resize(Label label, unsigned bytes, unsigned to);
  Label shift(Label label, unsigned bytes, int bits);
  Label mask(Label label, unsigned bytes, std::uint64_t mask);
  Label merge(value_callouts::Site& site, std::uint32_t where, Label a, Label b, unsigned bytes);
  Label join(Label low, Label high, unsigned low_bytes, unsigned high_bytes);
  Label as_number(value_callouts::Site& site, std::uint32_t where, Label label, unsigned bytes,
                  float number);

  // Operations on memory.
  void copy(void* to, const void* from, std::size_t bytes, CopiedAt at = {});
  Label label_at(const void* at, unsigned bytes);
  void set_label(void* at, unsigned bytes, Label label);
  Label constant(float value);

  // Code of the host, between launches, hands on what blocks stored, as where it converts o; what it makes of inputs is not
  // followed. Its labels are those of blocks, and what it computes has the place of the block's thread.
  Label load_on_host(const void* at, unsigned bytes);
  void store_on_host(const void* at, unsigned bytes, Label label);
  // Whether the host has the label of such a number; and whether only its block is known, which is not watched.
  bool is_on_host(Label label) const { return x_on_host.count(label) != 0; }
  bool is_only_of_block(Label label) const {
    return x_on_host.count(label) != 0 && !is_watched(x_on_host.at(label).block);
  }
  std::uint32_t place_of(Label label) const { return x_on_host.at(label).block << 10; }
  // `made` is made of that number.
  Label hand_on(Label made, Label of);
  void forget_writers(const void* at, std::size_t bytes);

  // The place that a thread named last: of a sum of products by a tensor core, or of a copy.
  void stand_at(value_callouts::Site* site) { x_at = site; }
  value_callouts::Site* stands_at() const { return x_at; }
  Label product(std::uint32_t where, Label addend, const std::vector<std::uint32_t>& pairs,
                float value);

 private:
  struct Page {
    std::array<std::uint32_t, 4096> bytes{};
  };
  struct Offered {
    std::array<std::uint64_t, 16> bits{};
    std::array<Label, 16> label{};
    unsigned next = 0;
  };

  static int find(const std::vector<ValueBuffer>& buffers, const void* at);
  std::uint32_t number_of(value_callouts::Site& site);
  Label add(value_callouts::Site& site, std::uint32_t where, std::array<std::uint32_t, 3> operand,
            float value);
  Label add_node(std::uint32_t site, std::uint32_t where, std::array<std::uint32_t, 3> operand,
                 float value);
  Packed unpack(Label label, unsigned bytes) const;
  Packed packed(Label label) const;  // of one with kPacked
  Label pack(const Packed& bytes, unsigned count);
  Packed bytes_at(const void* at, unsigned bytes);
  Page* page(std::uintptr_t at, bool make);
  bool is_copied(Label label) const;
  // The same, where what code of the host copied from an input is loaded here.
  Packed loaded_here(value_callouts::Site& site, std::uint32_t where, Packed parts);
  // The same, where the thread copies whole numbers from memory or registers: each gets a node of the copy's.
  Packed copied_here(value_callouts::Site& site, std::uint32_t where, Packed parts, unsigned bytes);
  // Whether a block that is not watched was the last to store there; and labels of numbers for that.
  bool is_of_unwatched(const void* at) const;
  Packed unwatched(value_callouts::Site& site, std::uint32_t where, unsigned bytes);
  // What a block that is not watched loads of the inputs.
  void note_elsewhere(const void* at, unsigned bytes);
  // `of`: only what this thread made; ~0: whoever did.
  void note_replaced(value_callouts::Site& site, const void* at, unsigned bytes, Label by,
                     std::uint32_t of);
  void write(std::uintptr_t at, const std::uint32_t* bytes, std::size_t count);
  std::uint32_t node_or_constant(Label label, float number);
  float number_of_bits(Label label, unsigned bytes, std::uint64_t bits) const;

  ValueOptions x_options;
  std::vector<bool> x_watched;  // by block, where not all are
  ValueGraph x_graph;
  std::vector<unsigned char> x_width;  // of nodes: bytes in memory
  std::vector<bool> x_read;            // of nodes: loaded from memory
  // Bits of several numbers; most are of a pair of 16 bits each.
  using SmallPacked = std::array<std::uint32_t, 4>;
  std::vector<Packed> x_packed;
  std::vector<SmallPacked> x_small_packed;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> x_pages;
  std::array<std::pair<std::uintptr_t, Page*>, 64> x_recent{};
  std::unordered_map<std::uint32_t, Label> x_constants;  // by bits
  struct Writer {
    std::uint32_t block = 0;
    value_callouts::Site* site = nullptr;
  };
  std::unordered_map<std::uintptr_t, Writer> x_writers;      // of 4 bytes of global memory
  std::unordered_map<Label, Writer> x_on_host;               // who stored what code of the host has
  std::unordered_map<std::uint32_t, Label> x_only_of_block;  // by block
  std::unordered_map<std::string, std::uint32_t> x_sites;
  std::vector<value_callouts::Site*> x_numbered;
  std::unordered_set<const value_callouts::Site*>
      x_constants_at;  // stores of what comes of no input
  std::vector<Offered> x_offered;
  std::uint32_t x_launch_begin = 0, x_blocks = 0;
  value_callouts::Site* x_at = nullptr;
};

// The recorder of host code or of the watched block that runs on the calling worker; else null.
ValueRecorder* watching_values();
// Whether numbers are followed, perhaps through other blocks than the one that runs: of these, what they read and store.
bool follows_values();
// Where the calling thread has just asked the executor for a copy.
CopiedAt copied_at();
// What the executor itself does to memory of the block.
void note_copied(void* to, const void* from, std::size_t bytes, CopiedAt at = {});
void note_cleared(void* at, std::size_t bytes);

}  // namespace attn_diag::host
