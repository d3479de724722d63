// Going through the graph of a kernel's numbers.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "harness/lines/terms.h"

namespace attn_diag::lines {

class Walk {
 public:
  explicit Walk(const Terms& terms)
      : x_terms(terms), x_graph(terms.graph()), x_attention(terms.attention()) {}

 protected:
  using ValueNode = host::ValueNode;
  using ValueOp = host::ValueOp;
  using ValueSite = host::ValueSite;

  // Numbers are made, or read, that are not in the graph: that something is in it nowhere says nothing.
  bool is_cut() const { return x_graph.full || !x_graph.unwatched.empty(); }
  const ValueNode& node(std::uint32_t n) const { return x_graph.nodes[n]; }
  const ValueSite& site(std::uint32_t n) const { return x_graph.sites[n]; }
  ValueOp op(std::uint32_t n) const;
  bool is_load(std::uint32_t n) const;
  // Of an element of an input: that code of the host copied it, not that a kernel loaded it.
  bool is_host_copy(std::uint32_t n) const { return site(node(n).site).line == 0; }
  // Whether its variable is one of the tool's own headers.
  bool is_own(std::uint32_t site_number) const {
    return site(site_number).variable.find("attn_diag_") != std::string::npos;
  }
  bool is_exponential(std::uint32_t n) const {
    return op(n) == ValueOp::kExp || op(n) == ValueOp::kExp2;
  }
  // The numbers that a node is made of; of a product of matrices the addend alone.
  class Operands {
   public:
    void add(std::uint32_t n) { x_nodes[x_count++] = n; }
    const std::uint32_t* begin() const { return x_nodes.data(); }
    const std::uint32_t* end() const { return begin() + x_count; }

   private:
    std::array<std::uint32_t, 3> x_nodes{};
    std::size_t x_count = 0;
  };
  Operands operands(std::uint32_t n) const {
    Operands out;
    for (std::size_t i = 0; i < (op(n) == ValueOp::kProduct ? 1 : 3); ++i)
      if (const std::uint32_t of = node(n).operand[i]; of != 0 && of < n && !node(n).is_input())
        out.add(of);
    return out;
  }
  // The first operand of a node of which `fits` is true; 0: none.
  template <class Fits>
  std::uint32_t first_operand(std::uint32_t n, const Fits& fits) const {
    for (const std::uint32_t operand : operands(n))
      if (fits(operand)) return operand;
    return 0;
  }
  std::uint32_t first_operand(std::uint32_t n, TermKind kind) const {
    return first_operand(n, [&](std::uint32_t operand) { return x_terms[operand].kind == kind; });
  }
  // The next number that is made of this one, by anything but a product of whole fragments; 0: there is none.
  std::uint32_t user_of(std::uint32_t n) const {
    for (std::uint32_t by = n + 1; by < x_graph.nodes.size(); ++by)
      if (const Operands of = operands(by);
          op(by) != ValueOp::kProduct && std::find(of.begin(), of.end(), n) != of.end())
        return by;
    return 0;
  }
  // A score: of all columns.
  bool is_whole(const Term& term) const {
    return x_terms.columns().count(term.set) == x_terms.columns().size();
  }
  // A score that has half of its columns, or a quarter: those that lanes add up in all steps but one or two.
  bool lacks_steps(const Term& term) const {
    if (term.kind != TermKind::kScore) return false;
    const auto has = x_terms.columns().count(term.set), all = x_terms.columns().size();
    return 2 * has == all || 4 * has == all;
  }
  unsigned num_seen(std::uint32_t row) const;  // keys
  bool sees_nothing(std::uint32_t row) const { return num_seen(row) == 0; }
  std::uint32_t key_row(std::uint32_t row, unsigned key) const;
  // Who stores what became this element of an output, perhaps before it was copied there; 0: nobody who tells.
  std::uint32_t store_of(const host::ValueOutput& output) const;
  // On the way of a number a choice of it where a score or a weight was at hand; 0: there is none.
  std::uint32_t chosen_instead(std::uint32_t n) const;
  // What was only moved.
  std::uint32_t made_by(std::uint32_t n) const;
  std::string place_of(std::uint32_t n) const;
  std::string query_text(std::uint32_t row) const;
  // "the weight of key 5"
  std::string term_text(std::uint32_t n) const;
  // " of batch 0, head 1": where what a number is of is; empty where there is one head, or none is known.
  std::string head_text(std::uint32_t n) const;
  static std::string keys_text(const std::vector<unsigned>& keys);
  // The load of the input that an element is.
  std::uint32_t input_of(std::uint32_t n) const;
  // As input_of(); with whole blocks, where the host moved the input before, the load of what it made. 0: none.
  std::uint32_t load_of(std::uint32_t n) const;
  // The two numbers of a product of matrices, or of a product, that do not fit.
  std::pair<std::uint32_t, std::uint32_t> operands_of(std::uint32_t n) const;
  // Whether these are elements of two inputs, in either order.
  bool are_elements_of(std::uint32_t a, unsigned one, std::uint32_t b, unsigned other) const {
    const auto is_of = [&](std::uint32_t n, unsigned buffer) {
      return n != 0 && x_terms[n].kind == TermKind::kElement && x_terms[n].buffer == buffer;
    };
    return (is_of(a, one) && is_of(b, other)) || (is_of(a, other) && is_of(b, one));
  }

  const Terms& x_terms;
  const host::ValueGraph& x_graph;
  Attention& x_attention;
};

}  // namespace attn_diag::lines
