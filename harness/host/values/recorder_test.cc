// The recorder alone, as a watch build calls it.
#include "harness/host/values/recorder.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <optional>

namespace attn_diag::host {
namespace {

using value_callouts::Op;
using value_callouts::Site;

Site site_of(Op op, const char* variable = "") {
  return {0, op, 7, 3, "a.cu", "f", variable, "", "", "", "a.cu", 0};
}
std::uint64_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

struct Recording {
  explicit Recording(std::uint64_t max_nodes = 1000,
                     const std::optional<std::vector<std::uint32_t>>& blocks = std::nullopt)
      : recorder(options(max_nodes, blocks)) {
    recorder.begin_launch();
    recorder.begin_block(0);
  }
  ValueOptions options(std::uint64_t max_nodes,
                       const std::optional<std::vector<std::uint32_t>>& blocks) {
    ValueOptions o;
    o.all_blocks = !blocks;
    if (blocks) o.blocks = *blocks;
    o.inputs.push_back({input, sizeof input, 4});
    o.inputs.push_back({halves, sizeof halves, 2});
    o.outputs.push_back({output, sizeof output, 4});
    o.max_nodes = max_nodes;
    return o;
  }

  alignas(16) float input[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  alignas(16) std::uint16_t halves[8] = {};
  alignas(16) float output[4] = {};
  alignas(16) float memory[8] = {};
  ValueRecorder recorder;
  Site load = site_of(Op::kLoad), store = site_of(Op::kStore, "x"), add = site_of(Op::kAdd),
       bits = site_of(Op::kBits);
};

}  // namespace

TEST_CASE("an element of an input that goes through memory and arithmetic is known in the output") {
  Recording r;
  const Label a = r.recorder.load(r.load, 5, &r.input[2], 4, bits_of(3));
  r.recorder.store(r.store, 5, &r.memory[1], 4, a, bits_of(3));
  const Label b = r.recorder.load(r.load, 6, &r.memory[1], 4, bits_of(3));
  const Label sum = r.recorder.compute(r.add, 6, 3.5F, {b, 0, 0}, {3, 0.5F, 0}, 2);
  r.recorder.store(r.store, 6, &r.output[3], 4, sum, bits_of(3.5F));

  const ValueGraph graph = r.recorder.take();
  const ValueOutput& out = graph.outputs[0][3];
  REQUIRE(out.node != 0);
  CHECK(out.block == 0);
  CHECK(graph.sites[out.site].variable == "x");
  CHECK(graph.outputs[0][2].block == ~0u);  // nobody stored it
  const ValueNode& stored = graph.nodes[out.node];
  const ValueNode& added = graph.nodes[stored.operand[0]];
  CHECK(graph.site_of(stored.operand[0]).op == Op::kAdd);
  CHECK(added.value == 3.5F);
  CHECK(graph.is_constant(added.operand[1]));
  CHECK(graph.nodes[added.operand[1]].value == 0.5F);
  std::uint32_t n = added.operand[0];
  while (!graph.nodes[n].is_input()) n = graph.nodes[n].operand[0];
  CHECK(graph.nodes[n].operand[0] == 1);  // the first input
  CHECK(graph.nodes[n].operand[1] == 2);
  CHECK(graph.nodes[n].where == 5);
}

TEST_CASE("halves of a word are told apart, and put together again") {
  Recording r;
  const Label both = r.recorder.load(r.load, 0, &r.halves[4], 4, 0);
  REQUIRE((both & kPacked) != 0);
  const Label low = r.recorder.mask(both, 4, 0xFFFF);
  const Label high = r.recorder.shift(both, 4, -16);
  const Label again = r.recorder.merge(r.bits, 0, low, r.recorder.shift(high, 4, 16), 4);
  r.recorder.set_label(&r.memory[0], 4, again);
  const Label first = r.recorder.label_at(&r.memory[0], 2);
  const Label second = r.recorder.label_at(reinterpret_cast<const std::byte*>(&r.memory[0]) + 2, 2);
  const Label narrow = r.recorder.resize(high, 4, 2);
  const ValueGraph graph = r.recorder.take();
  REQUIRE(first != 0);
  REQUIRE((first & kPacked) == 0);
  CHECK(graph.nodes[first].operand[0] == 2);
  CHECK(graph.nodes[first].operand[1] == 4);
  REQUIRE(second != 0);
  CHECK(graph.nodes[second].operand[1] == 5);
  CHECK(narrow == second);
}

TEST_CASE("copies take labels along, fills and stores of constants forget them") {
  Recording r;
  r.recorder.copy(r.memory, r.input + 4, 16);
  const Label copied = r.recorder.label_at(&r.memory[3], 4);
  r.recorder.forget(&r.memory[3], 4);
  const Label forgotten = r.recorder.label_at(&r.memory[3], 4);
  r.recorder.store(r.store, 0, &r.memory[2], 4, 0, 0);
  const Label constant = r.recorder.label_at(&r.memory[2], 4);
  const Label kept = r.recorder.label_at(&r.memory[1], 4);
  const ValueGraph graph = r.recorder.take();
  REQUIRE(copied != 0);
  CHECK(graph.nodes[copied].operand[1] == 7);
  CHECK(forgotten == 0);
  CHECK(constant == 0);
  CHECK(graph.nodes[kept].operand[1] == 5);
}

TEST_CASE("an element that the executor copies has the line that asked for it") {
  Recording r;
  Site asked = site_of(Op::kLoad, "k");
  r.recorder.copy(r.memory, r.input, 4, {&asked, 9});
  const Label there = r.recorder.label_at(&r.memory[0], 4);
  const ValueGraph graph = r.recorder.take();
  CHECK(graph.site_of(there).variable == "k");
  CHECK(graph.nodes[there].where == 9);
}

TEST_CASE("each number of several that are loaded, stored or copied at once has the line of that") {
  Recording r;
  Site from_input = site_of(Op::kLoad, "k"), put = site_of(Op::kStore, "tile"),
       taken = site_of(Op::kLoad, "part"), left = site_of(Op::kStore, "kept");
  float registers[2] = {};
  const Label two = r.recorder.load(from_input, 1, &r.input[2], 8, 0);
  r.recorder.store(put, 2, &r.memory[0], 8, two, 0, false);
  const Label again = r.recorder.load(taken, 3, &r.memory[0], 8, 0);
  r.recorder.copy(registers, r.memory, 8, {&taken, 4, &left});
  const Label there = r.recorder.label_at(&registers[1], 4);
  const Label stored = r.recorder.label_at(&r.memory[1], 4);
  const Label second = r.recorder.resize(r.recorder.shift(again, 8, -32), 8, 4);
  const ValueGraph graph = r.recorder.take();
  CHECK(graph.site_of(stored).variable == "tile");
  CHECK(graph.nodes[stored].where == 2);
  CHECK(graph.site_of(graph.nodes[stored].operand[0]).variable == "k");
  REQUIRE(second != 0);
  REQUIRE((second & kPacked) == 0);
  CHECK(graph.site_of(second).variable == "part");
  CHECK(graph.nodes[second].operand[0] == stored);
  CHECK(graph.site_of(there).variable == "kept");
  CHECK(graph.nodes[there].where == 4);
  CHECK(graph.site_of(graph.nodes[there].operand[0]).variable == "part");
  CHECK(graph.nodes[graph.nodes[there].operand[0]].operand[0] == stored);
}

TEST_CASE(
    "outputs that a kernel copies from memory to memory are the block's, with the line that "
    "stores") {
  Recording r;
  Site load = site_of(Op::kLoad, "tile"), store = site_of(Op::kStore, "o");
  r.recorder.copy(r.output, r.memory, 8, {&load, 5 << 10, &store});
  const ValueGraph graph = r.recorder.take();
  for (const unsigned i : {0U, 1U}) {
    CHECK(graph.outputs[0][i].block == 5);
    CHECK(graph.sites[graph.outputs[0][i].site].variable == "o");
  }
}

TEST_CASE("what a block stored stays its own on the way through memory of the host") {
  Recording r;
  Site store = site_of(Op::kStore, "o");
  float host[4] = {};
  r.recorder.note_global(store, 3, &r.memory[0], 4, true);
  r.recorder.copy(host, r.memory, 8);
  r.recorder.copy(r.output, host, 8);
  const ValueGraph graph = r.recorder.take();
  CHECK(graph.outputs[0][0].block == 3);
  CHECK(graph.sites[graph.outputs[0][0].site].variable == "o");
  CHECK(graph.outputs[0][1].block == ~0u);
}

TEST_CASE(
    "what code of the host makes of a block's results is the block's, and of other numbers "
    "nothing") {
  Recording r(1000, std::vector<std::uint32_t>{3});
  Site store = site_of(Op::kStore, "o"), round = site_of(Op::kRound, "narrow");
  const Label made = r.recorder.load(r.load, 3 << 10, &r.input[0], 4, bits_of(1));
  r.recorder.note_global(store, 3, &r.memory[0], 4, true);
  r.recorder.store(store, 3 << 10, &r.memory[0], 4, made, bits_of(1));
  r.recorder.note_global(store, 5, &r.memory[1], 4, true);
  float host[3] = {};
  for (const unsigned i : {0U, 1U, 2U}) {
    const Label read = r.recorder.load_on_host(&r.memory[i], 4);
    CHECK(r.recorder.is_on_host(read) == (i < 2));
    CHECK(r.recorder.is_only_of_block(read) == (i == 1));
    const Label converted =
        i == 0 ? r.recorder.hand_on(
                     r.recorder.convert(round, r.recorder.place_of(read), read, 1, 4), read)
               : read;
    r.recorder.store_on_host(&host[i], 4, converted);
  }
  CHECK(r.recorder.load_on_host(&r.input[0], 4) == 0);
  r.recorder.copy(r.output, host, 12);
  const ValueGraph graph = r.recorder.take();
  CHECK(graph.outputs[0][0].block == 3);
  CHECK(graph.site_of(graph.outputs[0][0].node).variable == "narrow");
  CHECK(graph.sites[graph.outputs[0][0].site].variable == "o");
  CHECK(graph.outputs[0][1].block == 5);
  CHECK(graph.outputs[0][1].node == 0);
  CHECK(graph.outputs[0][2].block == ~0u);
}

TEST_CASE("what is stored and replaced before anybody reads it is kept apart") {
  Recording r;
  const Label a = r.recorder.load(r.load, 0, &r.input[0], 4, bits_of(1));
  const auto store = [&](unsigned i, Label label) {
    r.recorder.store(r.store, 0, &r.memory[i], 4, label, bits_of(1));
  };
  store(0, a);
  store(0, 0);  // a constant instead
  store(1, a);
  r.recorder.load(r.load, 1, &r.memory[1], 4, bits_of(1));
  store(1, a);
  store(2, a);
  r.recorder.copy(&r.memory[4], &r.memory[2], 4);  // reads it, too
  store(2, a);
  store(3, a);
  store(3, a);
  const ValueGraph graph = r.recorder.take();
  REQUIRE(graph.replaced.size() == 2);
  CHECK(graph.nodes[graph.replaced[0].node].operand[0] == a);
  CHECK(graph.replaced[0].by == 0);
  CHECK(graph.sites[graph.replaced[0].site].variable == "x");
  CHECK(graph.nodes[graph.replaced[1].by].operand[0] == a);
}

TEST_CASE("what a thread left on its stack is not replaced by the next thread there") {
  Recording r;
  const Label a = r.recorder.load(r.load, 0, &r.input[0], 4, bits_of(1));
  for (const std::uint32_t thread : {0u, 1u})
    for (const bool local : {true, false})
      r.recorder.store(r.store, thread, &r.memory[local ? 0 : 1], 4, a, bits_of(1), local);
  const ValueGraph graph = r.recorder.take();
  REQUIRE(graph.replaced.size() == 1);
  CHECK(graph.nodes[graph.replaced[0].by].where == 1);
}

TEST_CASE("sites of a library are known that never ran, if another of it did") {
  Recording r;
  Site never = site_of(Op::kExp, "p");
  Site elsewhere = site_of(Op::kExp, "q");
  const std::array<Site*, 2> library = {&r.load, &never};
  const std::array<Site*, 1> other = {&elsewhere};
  add_value_sites(library.data(), library.size());
  add_value_sites(other.data(), other.size());
  r.recorder.load(r.load, 0, &r.input[0], 4, bits_of(1));
  const ValueGraph graph = r.recorder.take();
  remove_value_sites(library.data());
  remove_value_sites(other.data());
  REQUIRE(graph.sites.size() == 3);
  CHECK(graph.sites[1].ran);
  CHECK(graph.sites[2].variable == "p");
  CHECK_FALSE(graph.sites[2].ran);
  CHECK(never.number == 0);
}

TEST_CASE("of a store it is known whether anybody came there, if only with a constant") {
  Recording r;
  Site constant = site_of(Op::kStore, "p"), never = site_of(Op::kStore, "q");
  const std::array<Site*, 3> library = {&r.store, &constant, &never};
  add_value_sites(library.data(), library.size());
  const Label read = r.recorder.load(r.load, 0, &r.input[0], 4, bits_of(1));
  r.recorder.store(r.store, 0, &r.memory[0], 4, read, bits_of(1));
  r.recorder.store(constant, 0, &r.memory[1], 4, 0, bits_of(0));
  const ValueGraph graph = r.recorder.take();
  remove_value_sites(library.data());
  for (const ValueSite& site : graph.sites) {
    if (site.op != Op::kStore) continue;
    CHECK(site.stored == (site.variable != "q"));
    CHECK(site.ran == (site.variable != "p" && site.variable != "q"));
  }
}

TEST_CASE("what another lane offered is received with its label") {
  Recording r;
  const Label a = r.recorder.load(r.load, 3, &r.input[1], 4, bits_of(2));
  r.recorder.offer(3, a, bits_of(2));
  Site shuffle = site_of(Op::kPick);
  const Label got = r.recorder.receive(shuffle, 9, 3, bits_of(2));
  const Label other_bits = r.recorder.receive(shuffle, 9, 3, bits_of(4));
  const ValueGraph graph = r.recorder.take();
  REQUIRE(got != 0);
  CHECK(graph.nodes[got].operand[0] == a);
  CHECK(graph.nodes[got].where == 9);
  CHECK(other_bits == 0);
}

TEST_CASE("a float among the eight bytes that lanes hand on is received with a node of its own") {
  Recording r;
  const Label a = r.recorder.load(r.load, 3, &r.input[1], 4, bits_of(2));
  r.recorder.offer(3, r.recorder.resize(a, 4, 8), bits_of(2));
  Site shuffle = site_of(Op::kLoad, "x");
  const Label got = r.recorder.resize(r.recorder.receive(shuffle, 9, 3, bits_of(2)), 8, 4);
  const ValueGraph graph = r.recorder.take();
  REQUIRE(got != 0);
  REQUIRE((got & kPacked) == 0);
  CHECK(graph.nodes[got].operand[0] == a);
  CHECK(graph.nodes[got].where == 9);
  CHECK(graph.site_of(got).variable == "x");
}

TEST_CASE("memory that changed behind the recorder's back is not taken for what it was") {
  Recording r;
  const Label a = r.recorder.load(r.load, 0, &r.input[1], 4, bits_of(2));
  r.recorder.store(r.store, 0, &r.memory[0], 4, a, bits_of(2));
  const Label read = r.recorder.load(r.load, 0, &r.memory[0], 4, bits_of(99));
  const ValueGraph graph = r.recorder.take();
  CHECK(read == 0);
  CHECK(graph.unseen == 1);
}

TEST_CASE("memory that nobody wrote is a number of its own, and NaN") {
  Recording r;
  const Label read = r.recorder.load(r.load, 0, &r.memory[0], 4, 0xFFFFFFFF);
  const ValueGraph graph = r.recorder.take();
  REQUIRE(read != 0);
  CHECK(std::isnan(graph.nodes[read].value));
  CHECK(graph.nodes[read].operand[0] == 0);
}

TEST_CASE("blocks are known by whose results they read, and who stores what another stored") {
  Recording r;
  r.recorder.begin_block(1);
  r.recorder.note_global(r.store, 0, &r.memory[0], 4, true);
  r.recorder.note_global(r.load, 1, &r.memory[0], 4, false);
  r.recorder.note_output(r.store, 0, &r.output[0], 4, 0);
  r.recorder.note_output(r.store, 1 << 10, &r.output[0], 4, 0);
  const ValueGraph graph = r.recorder.take();
  REQUIRE(graph.reads_of.size() == 2);
  CHECK(graph.reads_of[1] == std::vector<std::uint32_t>{0});
  CHECK(graph.reads_of[0].empty());
  CHECK(graph.stored_twice == 1);
}

TEST_CASE("what blocks that are not watched load of the inputs is known") {
  Recording r(1000, std::vector<std::uint32_t>{1});
  r.recorder.copy(&r.memory[2], &r.input[3], 4);  // by code of the host
  r.recorder.begin_block(0);
  r.recorder.begin_block(1);
  r.recorder.note_global(r.load, 1, &r.input[0], 4, false);
  r.recorder.note_global(r.load, 0, &r.input[1], 4, false);
  r.recorder.note_global(r.load, 0, &r.memory[2], 4, false);
  const ValueGraph graph = r.recorder.take();
  REQUIRE(graph.loaded_elsewhere.size() == 2);
  std::vector<bool> expected(graph.loaded_elsewhere[0].size());
  expected[1] = expected[3] = true;
  CHECK(graph.loaded_elsewhere[0] == expected);
  CHECK(graph.is_watched(1));
  CHECK_FALSE(graph.is_watched(0));
}

TEST_CASE("what another thread of the block stores again counts, what the same one does does not") {
  for (const std::uint32_t second : {3U, 4U}) {
    Recording r;
    const Label read = r.recorder.load(r.load, 3, &r.input[0], 4, 0);
    r.recorder.store(r.store, 3, &r.output[0], 4, read, 0);
    r.recorder.store(r.store, second, &r.output[0], 4, read, 0);
    CHECK(r.recorder.take().stored_twice == (second == 3 ? 0 : 1));
  }
}

TEST_CASE("the graph is cut off at its limit, and says so") {
  Recording r(4);
  Label last = 1;
  for (int i = 0; i < 8; ++i) last = r.recorder.load(r.load, 0, &r.input[i], 4, 0);
  const ValueGraph graph = r.recorder.take();
  CHECK(last == 0);
  CHECK(graph.full);
  CHECK(graph.nodes.size() == 4);
}

TEST_CASE("of blocks that are not chosen nothing is recorded") {
  ValueOptions options;
  options.all_blocks = false;
  options.blocks = {2, 7};
  ValueRecorder recorder(options);
  recorder.begin_launch();
  CHECK_FALSE(recorder.begin_block(0));
  CHECK(recorder.begin_block(2));
  recorder.begin_block(4);
  recorder.begin_launch();  // five blocks ran before
  CHECK(recorder.begin_block(2));
  CHECK_FALSE(recorder.begin_block(3));
}

TEST_CASE("what a block stored that is not watched is told from a number that nobody made") {
  alignas(16) float memory[4] = {};
  ValueOptions options;
  options.all_blocks = false;
  options.blocks = {1};
  ValueRecorder recorder(options);
  Site load = site_of(Op::kLoadNumber), store = site_of(Op::kStore);
  recorder.begin_launch();
  recorder.begin_block(0);
  recorder.note_global(store, 0, &memory[0], 4, true);
  recorder.begin_block(1);
  const Label theirs = recorder.load(load, 1 << 10, &memory[0], 4, bits_of(2));
  const Label nobodys = recorder.load(load, 1 << 10, &memory[1], 4, bits_of(2));
  recorder.store(store, 1 << 10, &memory[0], 4, theirs, bits_of(2));
  recorder.note_global(store, 1, &memory[0], 4, true);
  const Label own = recorder.load(load, 1 << 10, &memory[0], 4, bits_of(2));
  const ValueGraph graph = recorder.take();
  CHECK(graph.unwatched == std::vector<std::uint32_t>{theirs});
  CHECK(nobodys != 0);
  CHECK(own != theirs);
}

TEST_CASE("what code of the host copied from an input is loaded where a kernel reads it") {
  Recording r;
  r.recorder.copy(r.memory, r.input, 16);  // by code of the host
  const Label one = r.recorder.load(r.load, 5, &r.memory[2], 4, bits_of(0));
  r.memory[2] = 3;
  const Label same = r.recorder.load(r.load, 5, &r.memory[2], 4, bits_of(3));
  const Label two = r.recorder.load(r.load, 6, &r.memory[0], 8, 0);
  const Label second = r.recorder.resize(r.recorder.shift(two, 8, -32), 8, 4);
  const ValueGraph graph = r.recorder.take();
  CHECK(one == 0);  // another number was stored there since
  REQUIRE(graph.nodes[same].is_input());
  CHECK(graph.nodes[same].operand[1] == 2);
  CHECK(graph.nodes[same].where == 5);
  CHECK(graph.site_of(same).line == 7);
  REQUIRE(graph.nodes[second].is_input());
  CHECK(graph.nodes[second].operand[1] == 1);
  CHECK(graph.nodes[second].where == 6);
}

}  // namespace attn_diag::host
