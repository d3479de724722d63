// A launch for a kernel that nothing in its file launches: grid, block and shared memory from the
// constants and index expressions of the kernel.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "harness/toolchain/adapt/arguments.h"
#include "harness/toolchain/adapt/bodies.h"
#include "harness/toolchain/adapt/facts_code.h"

namespace attn_diag::adapt {
namespace {

using source::Syntax;

bool has_any(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

class Shape {
 public:
  Shape(const Model& model, const Candidate& c, Facts& facts, std::vector<Note>& notes)
      : x_model(model),
        x_s(model.syntax()),
        x_c(c),
        x_f(*c.function),
        x_facts(facts),
        x_notes(notes) {}

  Body body() {
    block();
    grid();
    Around around;
    const std::vector<Instance> instances = instances_of(x_model, x_f, x_facts, x_notes);
    std::vector<InstanceCall> each;
    for (const Instance& instance : instances) {
      InstanceCall& one = each.emplace_back();
      one.condition = instance.condition;
      Around& own = one.around;
      Arguments arguments(x_facts, instance.names, own, x_notes);
      std::vector<std::string> words;
      for (std::size_t i = 0; i < x_f.parameters.size(); ++i) {
        if (&x_f.parameters[i] == x_c.params) {
          own.before.push_back(
              fmt::format("{} {} = {{}};", x_f.parameters[i].element, x_f.parameters[i].name));
          for (std::size_t m = 0; m < x_c.members.size(); ++m)
            if (x_c.member_roles[m].role != Role::kUnknown)
              own.before.push_back(fmt::format("{}.{} = {};", x_f.parameters[i].name,
                                               x_c.members[m].name,
                                               arguments.of(x_c.members[m], x_c.member_roles[m])));
          words.push_back(x_f.parameters[i].name);
        } else {
          words.push_back(arguments.of(x_f.parameters[i], x_c.roles[i]));
        }
      }
      const std::string kernel = x_f.qualified + instance.arguments;
      if (!x_shared.empty())
        one.lines.push_back(
            fmt::format("cudaFuncSetAttribute({}, cudaFuncAttributeMaxDynamicSharedMemorySize, "
                        "int(shared_bytes));",
                        kernel));
      one.lines.push_back(fmt::format("{}<<<grid, block, {}, c.stream()>>>({});", kernel,
                                      x_shared.empty() ? "0" : "shared_bytes",
                                      fmt::join(words, ", ")));
    }
    const std::vector<std::string> calls = branches(each, around);
    std::vector<std::string> lines;
    if (around.needs_rows)
      lines.emplace_back(
          "const std::size_t rows = std::size_t(c.batch()) * c.heads() * c.seqlen_q();");
    if (around.zero_output) lines.emplace_back("c.zero_o();");
    std::vector<std::string> inner = around.before;
    inner.push_back(fmt::format("const dim3 grid({});", x_grid));
    inner.push_back(fmt::format("const dim3 block({});", x_block));
    if (!x_shared.empty())
      inner.push_back(fmt::format("const std::size_t shared_bytes = {};", x_shared));
    inner.insert(inner.end(), calls.begin(), calls.end());
    inner.insert(inner.end(), around.after.begin(), around.after.end());
    add_calls(x_facts, inner, lines);
    Body out;
    if (around.needs_buffer) out.headers.insert("device_buffer.h");
    if (x_c.has(Role::kQkv) || x_c.has(Role::kKv)) out.headers.insert("packed_tensors.h");
    out.text = indented(lines, 2);
    return out;
  }

 private:
  void guess(std::string text) { x_notes.push_back({NoteKind::kGuessed, std::move(text)}); }

  bool uses(const char* builtin, const char* axis) const {
    for (std::size_t i = x_f.open; i < x_f.close; ++i)
      if (x_s.is(i, builtin) && x_s.is(i + 1, ".") && x_s.is(i + 2, axis)) return true;
    return false;
  }

  void block() {
    std::int64_t threads = 0;
    std::string why;
    if (const auto bounds = x_model.value(x_f.launch_bounds)) {
      threads = *bounds;
      why = fmt::format("__launch_bounds__ says {}", threads);
    }
    for (const std::string& name : x_model.constants()) {
      if (threads != 0) break;
      const std::string low = lower(name);
      const auto value = x_model.value(name);
      if (!value || *value < 1 || *value > 1024) continue;
      if (has_any(low, {"threads", "block_size", "blocksize", "block_dim", "blockdim"}) &&
          !has_any(low, {"row", "kv", "_m", "_n"})) {
        threads = *value;
        why = fmt::format("{} = {}", name, threads);
      } else if (has_any(low, {"warps"})) {
        threads = 32 * *value;
        why = fmt::format("32 * {} = {}", name, threads);
      }
    }
    if (uses("threadIdx", "y")) {
      const std::int64_t m = x_facts.tile_m == 0 ? 16 : x_facts.tile_m,
                         n = x_facts.tile_n == 0 ? 16 : x_facts.tile_n;
      x_block = fmt::format("{}, {}", n, m);
      guess(fmt::format("blocks of {} x {} threads, as the kernel uses threadIdx.y", n, m));
      return;
    }
    if (threads == 0) {
      threads = x_facts.tile_m != 0 ? x_facts.tile_m : 128;
      why = x_facts.tile_m != 0 ? "a thread for every query of a tile" : "nothing says how many";
    }
    x_block = std::to_string(threads);
    x_threads = threads;
    guess(fmt::format("blocks of {} threads: {}", threads, why));
  }

  // What a block index counts, by the statements that use it.
  std::string axis(const std::string& name) {
    std::string variable, statement;
    for (std::size_t i = x_f.open; i < x_f.close; ++i) {
      if (!x_s.is(i, "blockIdx") || !x_s.is(i + 2, name)) continue;
      // Only its part of "int tile = blockIdx.x, head = blockIdx.y;".
      std::size_t begin = x_s.statement_begin(i), end = x_s.statement_end(i);
      for (std::size_t j = i; j > begin; --j)
        if (x_s.is(j, "=")) {
          if (variable.empty()) variable = lower(std::string(x_s[j - 1].text));
          begin = j - 1;
          break;
        }
      for (std::size_t j = i; j < end; ++j) {
        if (x_s.is(j, "(")) j = x_s.match(j);
        if (x_s.is(j, ",")) end = j;
      }
      statement += " " + x_model.text(begin, end);
    }
    if (statement.empty()) return "";
    const std::string low = lower(statement);
    const std::string all = "c.batch() * c.heads()";
    const std::string tile_m = std::to_string(x_facts.tile_m != 0 ? x_facts.tile_m
                                              : x_threads != 0    ? x_threads
                                                                  : 64);
    const bool by_thread = low.find("* blockdim." + name) != std::string::npos ||
                           low.find("blockdim." + name + " *") != std::string::npos;
    if (by_thread)
      return fmt::format("(c.seqlen_q() + {0} - 1) / {0}",
                         uses("threadIdx", "y") ? tile_m : std::to_string(x_threads));
    if (low.find('/') != std::string::npos && low.find('%') != std::string::npos) return all;
    if (has_any(variable, {"bh", "batch_head", "batchhead", "head_batch", "b_h", "slice", "hb"}))
      return all;
    if (has_any(variable, {"batch"}) || variable == "b" || variable == "bz" || variable == "bidx" ||
        variable == "ib")
      return "c.batch()";
    if (has_any(variable, {"kv_head"})) return "c.kv_heads()";
    if (has_any(variable, {"head"}) || variable == "h" || variable == "hq" || variable == "hidx")
      return "c.heads()";
    if (has_any(variable, {"split", "chunk"})) {
      x_facts.takes_splits = true;
      return "c.num_splits()";
    }
    if (has_any(variable,
                {"tile", "block", "start", "row", "q0", "m0", "query", "qi", "q_", "m_"}) ||
        variable == "q" || variable == "i") {
      const bool by_tile = low.find('*') != std::string::npos ||
                           has_any(variable, {"tile", "block"}) || by_use(variable);
      return by_tile ? fmt::format("(c.seqlen_q() + {0} - 1) / {0}", tile_m) : "c.seqlen_q()";
    }
    return "?" + variable;
  }

  // Whether a variable is multiplied, as the number of a tile is.
  bool by_use(const std::string& variable) const {
    for (std::size_t i = x_f.open; i + 1 < x_f.close; ++i)
      if (lower(std::string(x_s[i].text)) == variable && (x_s.is(i + 1, "*") || x_s.is(i - 1, "*")))
        return true;
    return false;
  }

  void grid() {
    std::array<std::string, 3> axes = {axis("x"), axis("y"), axis("z")};
    // bx * gridDim.y: x counts batches, y heads.
    for (std::size_t i = 0; i < 2; ++i)
      if (axes[i].starts_with("?") && uses("gridDim", i == 0 ? "y" : "z")) {
        axes[i] = "c.batch()";
        axes[i + 1] = "c.heads()";
      }
    const auto counts = [&](const char* what) {
      return std::any_of(axes.begin(), axes.end(),
                         [&](const std::string& a) { return a.find(what) != std::string::npos; });
    };
    for (std::string& a : axes) {
      if (!a.starts_with("?")) continue;
      const std::string name = a.substr(1);
      a = !counts("c.seqlen_q()") && &a == &axes[0]
              ? fmt::format("(c.seqlen_q() + {0} - 1) / {0}",
                            x_facts.tile_m != 0 ? x_facts.tile_m : 64)
          : !counts("c.heads()") && !x_c.has(Role::kHeads) ? "c.batch() * c.heads()"
          : !counts("c.heads()")                           ? "c.heads()"
                                                           : "c.batch()";
      guess(fmt::format("what '{}' counts blocks of: {}", name.empty() ? "blockIdx" : name, a));
    }
    std::vector<std::string> words;
    for (std::size_t i = 0; i < 3; ++i)
      if (!axes[i].empty()) {
        while (words.size() < i) words.emplace_back("1");
        words.push_back(axes[i]);
      }
    if (words.empty()) words.emplace_back("1");
    x_grid = fmt::format("{}", fmt::join(words, ", "));
    guess(fmt::format("grid ({}), by the names that blockIdx is given", x_grid));
    if (counts("c.heads()") || counts("c.batch()") || counts("c.kv_heads()")) return shared();
    std::set<Role> roles;
    for (const auto* own : {&x_c.roles, &x_c.member_roles})
      for (const Classified& c : *own) roles.insert(c.role);
    for (const auto& [role, values] : x_facts.fixed) roles.insert(role);
    settle_heads(roles, x_facts, x_notes);
    if (!x_facts.single_head)
      x_notes.push_back(
          {NoteKind::kUnknown, "which blocks work on which head: no block index is named so"});
    shared();
  }

  // The dynamic shared memory, by how it is carved: offsets and what lies at the last of them.
  void shared() {
    std::string base;
    for (std::size_t i = x_f.open; i < x_f.close; ++i) {
      if (!x_s.is(i, "extern") || !x_s.is(i + 1, "__shared__")) continue;
      for (std::size_t j = i; j < x_s.statement_end(i); ++j)
        if (x_s.is(j, "[")) base = std::string(x_s[j - 1].text);
    }
    if (base.empty()) return;
    const std::int64_t d = x_facts.head_dims.empty() ? 0 : x_facts.head_dims.back();
    const std::string dim = d == 0 ? "c.head_dim()" : std::to_string(d);
    const std::int64_t m = x_facts.tile_m == 0 ? 64 : x_facts.tile_m,
                       n = x_facts.tile_n == 0 ? 64 : x_facts.tile_n;
    x_shared = fmt::format(
        "({0} * {2} + 2 * {1} * {2} + {0} * {1} + {0} * {2} + 4 * {0}) * sizeof(float)", m, n, dim);
    guess(
        fmt::format("dynamic shared memory for tiles of Q, K, V, S and O and four numbers a row in "
                    "fp32: {} carves it",
                    base));
  }

  const Model& x_model;
  const Syntax& x_s;
  const Candidate& x_c;
  const FunctionModel& x_f;
  Facts& x_facts;
  std::vector<Note>& x_notes;
  std::int64_t x_threads = 0;
  std::string x_grid, x_block, x_shared;
};

}  // namespace

Body bare_kernel(const Model& model, const Candidate& c, Facts& facts, std::vector<Note>& notes) {
  return Shape(model, c, facts, notes).body();
}

}  // namespace attn_diag::adapt
