#include "harness/adapt/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

namespace attn_diag::adapt {
namespace {

using source::Syntax;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

class Gatherer {
 public:
  Gatherer(const Model& model, const Candidate& c, std::vector<Note>& notes)
      : x_model(model), x_s(model.syntax()), x_c(c), x_notes(notes) {
    x_code.push_back(c.function);
    for (const FunctionModel* kernel : kernels_of(model, *c.function))
      if (kernel != c.function) x_code.push_back(kernel);
    // Device functions that those call, and host functions in between.
    for (std::size_t i = 0; i < x_code.size(); ++i)
      for (const FunctionModel& f : model.functions())
        if (x_code[i]->calls.count(f.name) > 0 &&
            std::find(x_code.begin(), x_code.end(), &f) == x_code.end())
          x_code.push_back(&f);
  }

  Facts gather() {
    sizes();
    tiles();
    types();
    head_dims();
    arithmetic();
    outputs();
    mask();
    layout();
    multiples();
    host_memory();
    return x_facts;
  }

 private:
  void note(NoteKind kind, std::string text) { x_notes.push_back({kind, std::move(text)}); }

  template <class F>
  void each_token(const F& f) const {
    for (const FunctionModel* function : x_code)
      for (std::size_t i = function->open; i < function->close; ++i) f(*function, i);
  }
  bool mentions_part(std::initializer_list<const char*> parts) const {
    bool found = false;
    each_token([&](const FunctionModel&, std::size_t i) {
      for (const char* part : parts) found |= x_s[i].text.find(part) != std::string_view::npos;
    });
    return found;
  }
  // Roles of the candidate, or of the kernels whose launches are taken out of it.
  bool has(Role role) const {
    if (x_c.has(role)) return true;
    if (x_c.way != Way::kLaunchCode) return false;
    for (const FunctionModel* f : x_code)
      if (f->is_kernel)
        for (const Classified& r : classify(f->parameters))
          if (r.role == role) return true;
    return false;
  }

  void sizes() {
    x_facts.grouped_heads = has(Role::kKvHeads) || has(Role::kGroup);
    x_facts.other_seqlen_k = (has(Role::kSeqlenQ) || has(Role::kSeqlen)) && has(Role::kSeqlenK);
    x_facts.takes_splits = has(Role::kNumSplits);
    const bool any_scale = has(Role::kScale) || has(Role::kScaleLog2);
    x_facts.own_scale = !any_scale;
    if (x_facts.own_scale)
      note(NoteKind::kGuessed,
           "no parameter is the softmax scale: it computes 1/sqrt(head_dim) itself");
    const bool heads = has(Role::kBatch) || has(Role::kHeads) || has(Role::kBatchHeads) ||
                       has(Role::kHidden) || has(Role::kStride);
    bool indexed = false;  // by blocks beyond those of the queries
    each_token([&](const FunctionModel& f, std::size_t i) {
      indexed |= f.is_kernel && (x_s.is(i, "blockIdx") || x_s.is(i, "gridDim")) &&
                 (x_s.is(i + 2, "y") || x_s.is(i + 2, "z"));
    });
    x_facts.single_head = x_c.way == Way::kHostFunction && !heads;
    if (x_facts.single_head)
      note(NoteKind::kGuessed,
           "no parameter is a batch size or number of heads: it is called once for every head");
    (void)indexed;
  }

  void tiles() {
    const auto take = [&](const std::string& name, std::optional<std::int64_t> value) {
      if (!value || *value < 1 || *value > 1024) return;
      const Role role = classify_size(name).role;
      std::int64_t* to = role == Role::kTileM   ? &x_facts.tile_m
                         : role == Role::kTileN ? &x_facts.tile_n
                                                : nullptr;
      if (to == nullptr || *to != 0) return;
      *to = *value;
      note(NoteKind::kFound, fmt::format("{} = {} is {}", name, *value, words(role)));
    };
    for (const FunctionModel* f : x_code) {
      for (std::size_t i = 0; i < f->templates.size(); ++i) {
        for (const auto& instance : x_model.instances(f->name))
          if (i < instance.size()) take(f->templates[i].name, x_model.value(instance[i]));
        if (!f->templates[i].default_text.empty())
          take(f->templates[i].name, x_model.value(f->templates[i].default_text));
      }
    }
    for (const std::string& name : x_model.constants()) take(name, x_model.value(name));
    if (x_facts.tile_m == 0 && x_facts.tile_n == 0) {
      for (const std::string& name : x_model.constants()) {
        const std::string low = lower(name);
        const auto value = x_model.value(name);
        const bool square = low == "tile" || low == "tile_size" || low == "ktile" ||
                            low == "ktilesize" || low == "tile_dim" || low == "blk";
        if (!square || !value || *value < 1 || *value > 1024) continue;
        x_facts.tile_m = x_facts.tile_n = *value;
        note(NoteKind::kGuessed,
             fmt::format("{} = {} is taken for both sides of a tile", name, *value));
        break;
      }
    }
    if (x_facts.tile_m == 0 || x_facts.tile_n == 0)
      note(NoteKind::kGuessed,
           fmt::format("no constant names {} per tile: 64 is declared, which only places findings",
                       x_facts.tile_m == 0 && x_facts.tile_n == 0 ? "queries and keys"
                       : x_facts.tile_m == 0                      ? "queries"
                                                                  : "keys"));
  }

  void types() {
    const auto add = [&](const std::string& element) {
      std::string type = element;
      for (int i = 0; i < 3 && dtype_of(type).empty(); ++i) type = x_model.resolve_type(type);
      const std::string dtype = dtype_of(type);
      if (!dtype.empty()) x_facts.dtypes.insert(dtype);
    };
    const auto tensors = [&](const std::vector<Parameter>& parameters,
                             const std::vector<Classified>& roles) {
      for (std::size_t i = 0; i < roles.size(); ++i)
        if ((roles[i].role == Role::kQ || roles[i].role == Role::kQkv) && parameters[i].is_pointer)
          add(parameters[i].element);
    };
    tensors(x_c.function->parameters, x_c.roles);
    tensors(x_c.members, x_c.member_roles);
    for (const FunctionModel* f : x_code) {
      if (!x_facts.dtypes.empty()) break;
      if (!f->is_kernel && f != x_c.function) continue;
      tensors(f->parameters, classify(f->parameters));
      for (std::size_t i = 0; i < f->templates.size(); ++i)
        for (const auto& instance : x_model.instances(f->name))
          if (i < instance.size() && f->templates[i].kind != "int") add(instance[i]);
    }
    // at::Half by its scalar type, or a data_ptr<...>() that says it.
    if (x_facts.dtypes.empty())
      each_token([&](const FunctionModel&, std::size_t i) {
        if (x_s.is(i, "data_ptr") && x_s.is(i + 1, "<") && x_s.close_angle(i + 1) < x_s.size())
          add(x_model.text(i + 2, x_s.close_angle(i + 1)));
      });
    if (!x_facts.dtypes.empty()) {
      note(NoteKind::kFound, fmt::format("element type {}", fmt::join(x_facts.dtypes, ", ")));
      return;
    }
    const bool half = mentions_part({"half"}), bf16 = mentions_part({"bfloat16"});
    x_facts.dtypes.insert(half ? "fp16" : bf16 ? "bf16" : "fp32");
    note(NoteKind::kGuessed,
         fmt::format("element type {}, as the code uses {}", *x_facts.dtypes.begin(),
                     half   ? "half"
                     : bf16 ? "bfloat16"
                            : "neither half nor bfloat16"));
  }

  void head_dims() {
    std::set<std::int64_t> dims;
    const auto take = [&](const std::string& name, std::optional<std::int64_t> value) {
      if (value && *value >= 4 && *value <= 512 && classify_size(name).role == Role::kHeadDim)
        dims.insert(*value);
    };
    for (const FunctionModel* f : x_code) {
      for (std::size_t i = 0; i < f->templates.size(); ++i) {
        for (const auto& instance : x_model.instances(f->name))
          if (i < instance.size()) take(f->templates[i].name, x_model.value(instance[i]));
        take(f->templates[i].name, x_model.value(f->templates[i].default_text));
      }
    }
    if (dims.empty() || !has(Role::kHeadDim))
      for (const std::string& name : x_model.constants())
        if (name.size() > 1 || dims.empty()) take(name, x_model.value(name));
    // head_dim == 64, case 128: of a switch on it, head_dim must be 64.
    each_token([&](const FunctionModel&, std::size_t i) {
      if (x_s[i].is_identifier() &&
          classify_size(std::string(x_s[i].text)).role == Role::kHeadDim && x_s.is(i + 1, "=="))
        take("head_dim", x_model.value(std::string(x_s[i + 2].text)));
      if (!x_s.is(i, "switch") || !x_s.is(i + 1, "(")) return;
      if (classify_size(std::string(x_s[i + 2].text)).role != Role::kHeadDim) return;
      const std::size_t open = x_s.match(i + 1) + 1;
      for (std::size_t j = open; x_s.is(open, "{") && j < x_s.match(open); ++j)
        if (x_s.is(j, "case")) take("head_dim", x_model.value(std::string(x_s[j + 1].text)));
    });
    x_facts.head_dims.assign(dims.begin(), dims.end());
    if (!dims.empty()) {
      note(NoteKind::kFound, fmt::format("head_dim {}", fmt::join(dims, ", ")));
    } else if (x_c.way == Way::kTorchFunction) {
      note(NoteKind::kGuessed, "any head_dim: tensors say it, and no constant limits it by name");
    } else if (has(Role::kHeadDim) || has(Role::kHidden)) {
      note(NoteKind::kGuessed,
           "any head_dim: it is a parameter, and no constant limits it by name");
    } else if (const std::int64_t said = head_dim_of_comments(); said != 0) {
      x_facts.head_dims = {said};
      note(NoteKind::kGuessed, fmt::format("head_dim {}, as a comment says", said));
    } else {
      x_facts.head_dims = {64};
      note(NoteKind::kUnknown,
           "which head_dim it is for: no parameter, constant or comment says; 64 is declared");
    }
  }

  // "head_dim 64", "head dim = 64", "d = 64" of the text; 0 if it has none.
  std::int64_t head_dim_of_comments() const {
    for (const std::string& text : x_model.code().texts)
      for (const char* word : {"head_dim", "head dim", "headdim", "HEAD_DIM", "head dimension"})
        for (std::size_t at = text.find(word); at != std::string::npos;
             at = text.find(word, at + 1)) {
          std::size_t i = at + std::string(word).size();
          while (i < text.size() && (text[i] == ' ' || text[i] == '=' || text[i] == ':')) ++i;
          const std::int64_t value = std::strtol(text.c_str() + i, nullptr, 10);
          if (value >= 4 && value <= 512) return value;
        }
    return 0;
  }

  void arithmetic() {
    x_facts.tensor_cores = mentions_part({"wmma", "mma_sync", "wgmma"});
    each_token([&](const FunctionModel&, std::size_t i) {
      x_facts.tensor_cores |= x_s[i].kind == source::TokenKind::kString &&
                              x_s[i].text.find("mma") != std::string_view::npos;
    });
    x_facts.exp2 = mentions_part({"exp2f", "ex2", "h2exp2", "hexp2"});
    const bool narrow = x_facts.dtypes.count("fp32") == 0;
    if (x_facts.tensor_cores) {
      note(NoteKind::kFound, "products on tensor cores");
      if (narrow) {
        x_facts.p_in_input_type = true;
        note(NoteKind::kGuessed, "P is rounded to the input type, as tensor cores take it so");
      }
    }
    if (!narrow || x_facts.tensor_cores) return;
    // An array of P, or an assignment to one, in the input type.
    each_token([&](const FunctionModel&, std::size_t i) {
      if (x_facts.p_in_input_type || dtype_of(std::string(x_s[i].text)).empty() ||
          dtype_of(std::string(x_s[i].text)) == "fp32")
        return;
      for (std::size_t j = i + 1; j < i + 4 && j < x_s.size(); ++j) {
        const std::string name = lower(std::string(x_s[j].text));
        if (name == "p" || name == "sp" || name == "s_p" || name == "ps" || name == "p_s" ||
            name == "p_smem" || name == "smem_p" || name == "rp" || name == "probs") {
          x_facts.p_in_input_type = true;
          note(NoteKind::kGuessed,
               fmt::format("P is rounded to the input type, as '{} {}' holds it", x_s[i].text,
                           x_s[j].text));
          return;
        }
      }
    });
  }

  void outputs() {
    x_facts.has_lse = has(Role::kLse);
    const bool torch = x_c.way == Way::kTorchFunction;
    if (!x_facts.has_lse && !torch)
      note(NoteKind::kFound, "no parameter is a log-sum-exp: o alone is compared");
    if (!x_facts.has_lse) return;
    bool log2 = false, ln2 = false;
    each_token([&](const FunctionModel&, std::size_t i) {
      const std::string text = lower(std::string(x_s[i].text));
      log2 |= text == "log2f" || text == "log2" || text == "__log2f";
      ln2 |= text.find("ln2") != std::string::npos || text == "ln_2" || text.starts_with("0.6931");
    });
    x_facts.base2_lse = log2 && !ln2;
    if (log2)
      note(NoteKind::kGuessed,
           x_facts.base2_lse
               ? "the log-sum-exp is in base 2, as the code takes log2 and names no ln 2"
               : "the log-sum-exp is natural: the code takes log2, but names ln 2 too");
  }

  void mask() {
    x_facts.window = has(Role::kWindowLeft);
    x_facts.causal = has(Role::kCausal) || has(Role::kWindowRight);
    for (const FunctionModel* f : x_code)
      for (const TemplateParameter& t : f->templates)
        x_facts.causal |= classify_size(t.name).role == Role::kCausal;
    if (x_facts.causal) {
      note(NoteKind::kFound, "a parameter says whether the mask is causal");
      return;
    }
    bool named = false;
    for (const FunctionModel* f : x_code)
      named |= lower(f->name).find("causal") != std::string::npos;
    const auto constant =
        std::find_if(x_model.constants().begin(), x_model.constants().end(),
                     [](const std::string& n) { return classify_size(n).role == Role::kCausal; });
    if (constant != x_model.constants().end()) named = x_model.value(*constant).value_or(0) != 0;
    x_facts.causal_only = named;
    if (named) note(NoteKind::kGuessed, "the mask is always causal, by a name that says so");
  }

  void layout() {
    std::set<std::string> axes;
    for (const auto* roles : {&x_c.roles, &x_c.member_roles})
      for (const Classified& r : *roles)
        if (r.role == Role::kStride) axes.insert(r.stride);
    if (axes.count("q head") > 0 && axes.count("q seq") > 0) {
      x_facts.both_layouts = true;
      note(NoteKind::kFound, "strides of heads and rows are parameters: both layouts");
      return;
    }
    // Products of sizes that index: of a row, heads * dim in BSHD, and dim alone in BHSD.
    int bshd = 0, bhsd = 0;
    each_token([&](const FunctionModel&, std::size_t i) {
      if (!x_s.is(i, "*") || x_s.is(i - 2, "*")) return;
      const auto role = [&](std::size_t at) {
        return x_s[at].is_identifier() ? classify_size(std::string(x_s[at].text)).role
                                       : Role::kUnknown;
      };
      const bool ends = !x_s.is(i + 4, "*");
      if (!x_s.is(i + 2, "*") || !ends) return;
      const Role second = role(i + 1), third = role(i + 3);
      const bool heads = second == Role::kHeads || second == Role::kKvHeads;
      const bool seq =
          second == Role::kSeqlen || second == Role::kSeqlenQ || second == Role::kSeqlenK;
      if (third == Role::kHeadDim) (heads ? bshd : seq ? bhsd : bhsd) += heads || seq ? 1 : 0;
    });
    // (b * S + s) * H + h against (b * H + h) * S + s.
    each_token([&](const FunctionModel&, std::size_t i) {
      if (!x_s.is(i, ")") || !x_s.is(i + 1, "*") || !x_s[i + 2].is_identifier()) return;
      const Role after = classify_size(std::string(x_s[i + 2].text)).role;
      bshd += after == Role::kHeads || after == Role::kKvHeads ? 1 : 0;
      bhsd += after == Role::kSeqlen || after == Role::kSeqlenQ || after == Role::kSeqlenK ? 1 : 0;
    });
    // x = q.size(1): which axis is which.
    each_token([&](const FunctionModel&, std::size_t i) {
      if (!x_s.is(i, "size") || !x_s.is(i + 1, "(") || i < 4) return;
      const Role of = classify_size(std::string(x_s[i - 4].text)).role;
      const bool one = x_s.is(i + 2, "1"), two = x_s.is(i + 2, "2");
      if ((one && of == Role::kHeads) || (two && (of == Role::kSeqlen || of == Role::kSeqlenQ)))
        bhsd += 2;
      if ((two && of == Role::kHeads) || (one && (of == Role::kSeqlen || of == Role::kSeqlenQ)))
        bshd += 2;
    });
    x_facts.bshd = bshd > bhsd;
    if (x_facts.single_head) return;
    if (bshd == 0 && bhsd == 0)
      note(NoteKind::kGuessed,
           "layout BHSD: no index expression shows the order of heads and rows");
    else
      note(NoteKind::kGuessed,
           fmt::format("layout {}, by {} of {} index expressions", x_facts.bshd ? "BSHD" : "BHSD",
                       std::max(bshd, bhsd), bshd + bhsd));
  }

  // N % 64 == 0 in an assertion; or no comparison with N outside of loops, so that tails are not cut.
  void multiples() {
    const auto side = [](Role role) {
      return role == Role::kSeqlenK   ? 2
             : role == Role::kSeqlenQ ? 1
             : role == Role::kSeqlen  ? 3
                                      : 0;
    };
    int guarded = 0, known = 0;
    each_token([&](const FunctionModel& f, std::size_t i) {
      if (!x_s[i].is_identifier()) return;
      const int which = side(classify_size(std::string(x_s[i].text)).role);
      if (which == 0) return;
      if (x_s.is(i + 1, "%") && !f.is_kernel) {
        const auto value = x_model.value(std::string(x_s[i + 2].text));
        if (!value || *value < 2 || *value > 1024 || !x_s.is(i + 3, "==")) return;
        if ((which & 1) != 0) x_facts.q_multiple = std::max(x_facts.q_multiple, *value);
        if ((which & 2) != 0) x_facts.k_multiple = std::max(x_facts.k_multiple, *value);
        known |= which;
        note(NoteKind::kFound, fmt::format("{} must be a multiple of {}", x_s[i].text, *value));
      }
      const bool compared = x_s.is(i - 1, "<") || x_s.is(i - 1, ">=") || x_s.is(i + 1, "<=") ||
                            x_s.is(i + 1, ">") || x_s.is(i - 1, "<=") || x_s.is(i - 1, ">");
      const bool cut = x_s.is(i - 2, "min") || x_s.is(i - 1, ",") || x_s.is(i + 1, ",") ||
                       (x_s.is(i + 1, "-") && x_s.is(i + 2, "1"));
      if (f.is_device || f.is_kernel) guarded |= (compared && !in_for(i)) || cut ? which : 0;
    });
    if (x_facts.tile_m == 0 && x_facts.tile_n == 0) return;
    const auto guess = [&](std::int64_t& multiple, std::int64_t tile, int which, const char* what) {
      if (tile < 2 || (known & which) != 0 || (guarded & which) != 0) return;
      multiple = tile;
      note(NoteKind::kGuessed,
           fmt::format("the number of {} is a multiple of {}: no comparison cuts a last tile", what,
                       tile));
    };
    const bool has_kernel = std::any_of(x_code.begin(), x_code.end(),
                                        [](const FunctionModel* f) { return f->is_kernel; });
    if (!has_kernel) return;
    guess(x_facts.q_multiple, x_facts.tile_m, 1, "queries");
    guess(x_facts.k_multiple, x_facts.tile_n, 2, "keys");
  }

  // Whether the comparison at i is the condition of a for.
  bool in_for(std::size_t i) const {
    int depth = 0;
    while (i-- > 0) {
      if (x_s.is(i, ")")) ++depth;
      if (x_s.is(i, "{") || x_s.is(i, "}")) return false;
      if (x_s.is(i, "(") && depth-- == 0) return x_s.is(i - 1, "for");
    }
    return false;
  }

  void host_memory() {
    if (x_c.way != Way::kHostFunction) return;
    for (std::size_t k = 0; k < x_c.roles.size(); ++k) {
      const std::string& name = x_c.function->parameters[k].name;
      if (x_c.roles[k].role != Role::kQ && x_c.roles[k].role != Role::kO) continue;
      for (std::size_t i = x_c.function->open; i < x_c.function->close; ++i)
        if (x_s[i].text.starts_with("cudaMemcpy") && x_s.is(i + 1, "("))
          for (const std::string& argument : x_model.split(i + 2, x_s.match(i + 1)))
            x_facts.host_memory |= argument == name;
    }
    if (x_facts.host_memory)
      note(NoteKind::kFound,
           "it copies its arguments to and from the device: they are host memory");
  }

  const Model& x_model;
  const Syntax& x_s;
  const Candidate& x_c;
  std::vector<Note>& x_notes;
  std::vector<const FunctionModel*> x_code;
  Facts x_facts;
};

}  // namespace

Facts gather(const Model& model, const Candidate& c, std::vector<Note>& notes) {
  return Gatherer(model, c, notes).gather();
}

}  // namespace attn_diag::adapt
