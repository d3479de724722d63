#include "harness/toolchain/adapt/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "harness/toolchain/adapt/codes.h"
#include "harness/toolchain/adapt/role_names.h"

namespace attn_diag::adapt {
bool is_tensor_class(const Parameter& p) {
  return p.element.ends_with("Tensor") || p.element.ends_with("Tensor>");
}

bool is_integer(const std::string& element) {
  static const std::set<std::string> types = {
      "int",          "unsigned",      "unsigned int",
      "long",         "long long",     "size_t",
      "int32_t",      "int64_t",       "uint32_t",
      "uint64_t",     "std::size_t",   "short",
      "std::int32_t", "std::int64_t",  "index_t",
      "uint",         "unsigned long", "const int",
      "Index",        "std::uint32_t", "unsigned long long"};
  return types.count(element) > 0;
}

namespace {

Classified classify_one(const Parameter& p) {
  Classified out;
  const bool opaque = p.is_pointer && p.element == "void" &&
                      (p.name == "stream" || p.name == "cuda_stream" || p.name == "cudaStream");
  if (p.element == "cudaStream_t" || p.element == "at::cuda::CUDAStream" ||
      p.element == "CUstream" || opaque) {
    out.role = Role::kStream;
    return out;
  }
  const bool tensor_class = p.element.ends_with("Tensor") || p.element.ends_with("Tensor>");
  if (p.is_pointer || tensor_class) {
    out.role = is_integer(p.element) && !tensor_class ? integers_role(p.name) : tensor_role(p.name);
    const std::vector<std::string> parts = split_name(p.name);
    if (out.role == Role::kPaged && parts.size() > 1 &&
        (parts.back() == "strides" || parts.back() == "stride")) {
      out.role = Role::kStride;
      return out;
    }
    if (p.holds_lse && (out.role == Role::kUnknown || out.role == Role::kRowMax ||
                        out.role == Role::kRowSum || out.role == Role::kWorkspace))
      out.role = Role::kLse;
    if (out.role == Role::kUnknown && p.is_const && p.element == "float" &&
        number_role(p.name) == Role::kScale)
      out.role = Role::kScale;
    return out;
  }
  out.stride = stride_of(p.name);
  if (!out.stride.empty()) {
    out.role = Role::kStride;
    return out;
  }
  const bool real = p.element == "float" || p.element == "double" || p.element == "half" ||
                    p.element == "__half" ||
                    p.element.find("optional<float>") != std::string::npos ||
                    p.element.find("optional<double>") != std::string::npos;
  out.role = real ? number_role(p.name) : size_role(p.name);
  if (!real && out.role == Role::kUnknown) out.role = number_role(p.name);
  const bool says_type = out.role == Role::kIsFp16 || out.role == Role::kIsBf16;
  if ((p.element == "bool" && out.role != Role::kCausal && !says_type) ||
      (says_type && p.element != "bool" && p.element != "int"))
    out.role = Role::kUnknown;
  return out;
}

}  // namespace

Classified classify_size(const std::string& name) {
  Classified out;
  out.stride = stride_of(name);
  out.role = out.stride.empty() ? size_role(name) : Role::kStride;
  return out;
}

Classified classify_constant(const std::string& name) {
  if (name.size() > 2 && name[0] == 'k' && std::isupper(static_cast<unsigned char>(name[1])) != 0) {
    const Classified own = classify_size(name.substr(1));
    if (own.role != Role::kUnknown) return own;
  }
  return classify_size(name);
}

namespace {

// "k_scale", "v_dequant_scale": of one tensor.
bool scales_a_tensor(const std::string& name) {
  const std::vector<std::string> parts = split_name(name);
  return std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
    static const std::set<std::string> names = {"q",   "k",       "v",       "o",
                                                "kv",  "descale", "dequant", "quant",
                                                "out", "qscale",  "kscale",  "vscale"};
    return names.count(part) > 0;
  });
}

// Scales of tensors are 1 where there is a softmax scale beside them, or several of them.
void settle_scales(const std::vector<Parameter>& parameters, std::vector<Classified>& out) {
  int whole = 0, single = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i].role == Role::kScale) ++(scales_a_tensor(parameters[i].name) ? single : whole);
  if (whole == 0 && single < 2) return;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i].role != Role::kScale || !scales_a_tensor(parameters[i].name)) continue;
    out[i].role = Role::kUnitScale;
    out[i].guess = "1, as what it scales is not quantised here";
  }
}

// A single short name left over is the one size or number still missing: nb beside nq, nk, nh and hd.
void settle_last(const std::vector<Parameter>& parameters, std::vector<Classified>& out) {
  const auto has = [&](std::initializer_list<Role> roles) {
    return std::any_of(out.begin(), out.end(), [&](const Classified& c) {
      return std::find(roles.begin(), roles.end(), c.role) != roles.end();
    });
  };
  std::vector<std::size_t> sizes, numbers;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Parameter& p = parameters[i];
    const bool open = out[i].role == Role::kUnknown || p.name == "size";
    if (p.is_pointer || !open || p.has_default || p.name.size() > 5) continue;
    if (is_integer(p.element)) sizes.push_back(i);
    if (p.element == "float" && p.name != "eps" && p.name.find("cap") == std::string::npos)
      numbers.push_back(i);
  }
  std::vector<Role> missing;
  if (!has({Role::kBatch, Role::kBatchHeads, Role::kTokens, Role::kOffsets}))
    missing.push_back(Role::kBatch);
  if (!has({Role::kHeads, Role::kBatchHeads, Role::kHidden})) missing.push_back(Role::kHeads);
  if (!has({Role::kSeqlen, Role::kSeqlenQ, Role::kSeqlenK, Role::kTokens}))
    missing.push_back(Role::kSeqlen);
  if (!has({Role::kHeadDim, Role::kHidden})) missing.push_back(Role::kHeadDim);
  const auto settle = [&](std::size_t i, Role role) {
    out[i] = {role, "", "nothing else is, and nothing is known of it"};
  };
  if (sizes.size() == 1 && missing.size() == 1) settle(sizes.front(), missing.front());
  if (numbers.size() == 1 && !has({Role::kScale, Role::kScaleLog2}))
    settle(numbers.front(), Role::kScale);
}

}  // namespace

std::vector<Classified> classify(const std::vector<Parameter>& parameters) {
  std::vector<Classified> out;
  for (const Parameter& p : parameters) out.push_back(classify_one(p));
  const auto has = [&](Role role) {
    return std::any_of(out.begin(), out.end(), [&](const Classified& c) { return c.role == role; });
  };
  const auto each = [&](const auto& f) {
    for (std::size_t i = 0; i < out.size(); ++i) f(parameters[i], out[i]);
  };

  // dQ is device memory where there is no Q beside it, else a gradient.
  if (!has(Role::kQ)) {
    each([](const Parameter& p, Classified& c) {
      if (c.role != Role::kGradient || p.name.size() != 2) return;
      const char t = p.name[1];
      c.role = t == 'Q' || t == 'q'   ? Role::kQ
               : t == 'K' || t == 'k' ? Role::kK
               : t == 'V' || t == 'v' ? Role::kV
                                      : Role::kO;
      c.guess = "taken for device memory, not for a gradient, as there is no Q beside it";
    });
  }

  // Sizes that mean another thing beside others.
  each([&](const Parameter& p, Classified& c) {
    if (p.is_pointer) return;
    // Tokens of all batches, where these lie one behind the other.
    if (c.role == Role::kSeqlen && has(Role::kOffsets) &&
        join(split_name(p.name)).find("tokens") != std::string::npos)
      c.role = Role::kTokens;
    const auto other_seqlen = [&] {
      for (std::size_t i = 0; i < out.size(); ++i)
        if (parameters[i].name != p.name && !parameters[i].is_pointer &&
            (out[i].role == Role::kSeqlen || out[i].role == Role::kSeqlenQ))
          return true;
      return false;
    };
    if (p.name == "N" && c.role == Role::kSeqlen && has(Role::kSeqlenQ)) {
      c.role = Role::kSeqlenK;
      c.guess = "the number of keys, as there is a number of queries beside it";
    } else if (p.name == "N" && c.role == Role::kSeqlen && !has(Role::kBatch) &&
               !has(Role::kBatchHeads) && other_seqlen()) {
      c.role = Role::kBatch;
      c.guess = "the batch size, as another parameter is the sequence length";
    } else if (join(split_name(p.name)) == "nq" && c.role == Role::kSeqlenQ &&
               has(Role::kKvHeads) && !has(Role::kHeads) &&
               (has(Role::kSeqlen) || has(Role::kTokens))) {
      c.role = Role::kHeads;
      c.guess = "the number of heads, as one of KV heads and a length stand beside it";
    } else if (p.name == "Z" && c.role == Role::kBatchHeads && has(Role::kHeads)) {
      c.role = Role::kBatch;
      c.guess = "the batch size, as a number of heads stands beside it";
    } else if (p.name == "M" && c.role == Role::kSeqlenQ && !has(Role::kSeqlenK) &&
               !std::any_of(parameters.begin(), parameters.end(),
                            [](const Parameter& x) { return x.name == "N"; })) {
      c.role = Role::kUnknown;
    } else if (c.role == Role::kHeadDim && split_name(p.name).size() == 1 &&
               join(split_name(p.name)) == "dim") {
      for (std::size_t i = 0; i < out.size(); ++i)
        if (parameters[i].name != p.name && out[i].role == Role::kHeadDim) c.role = Role::kHidden;
    }
  });
  settle_codes(parameters, out);
  settle_scales(parameters, out);
  // Beside "is_causal" a "use_mask" is that of a tensor.
  const auto says_causal = [&](std::size_t i) {
    return out[i].role == Role::kCausal &&
           join(split_name(parameters[i].name)).find("causal") != std::string::npos;
  };
  bool any_causal = false;
  for (std::size_t i = 0; i < out.size(); ++i) any_causal |= says_causal(i);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (any_causal && out[i].role == Role::kCausal && !says_causal(i)) out[i].role = Role::kUnknown;
  // "n" and "k" beside "seqlen" ...: the first by name wins, a second of the same role is not known.
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool one_only = out[i].role != Role::kUnknown && out[i].role != Role::kStride &&
                            out[i].role != Role::kOptionalTensor && out[i].role != Role::kPaged &&
                            out[i].role != Role::kOffsets && out[i].role != Role::kLengths &&
                            out[i].role != Role::kUnitScale && out[i].role != Role::kCodeScale &&
                            out[i].role != Role::kCodeZero && out[i].role != Role::kWorkspace &&
                            out[i].role != Role::kGradient;
      if (one_only && out[i].role == out[j].role) {
        out[i] = {Role::kUnknown, "",
                  fmt::format("{} is {} already", parameters[j].name, words(out[j].role))};
        break;
      }
    }
  }

  // By place: three inputs and an output that no name tells.
  std::vector<std::size_t> inputs, outputs;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!parameters[i].is_pointer || out[i].role != Role::kUnknown) continue;
    (parameters[i].is_const ? inputs : outputs).push_back(i);
  }
  const auto by_place = [&](std::size_t i, Role role) {
    out[i] = {role, "", fmt::format("taken for {} by its place alone", words(role))};
  };
  if (!has(Role::kQ) && !has(Role::kK) && !has(Role::kV) && !has(Role::kQkv)) {
    if (inputs.size() == 3) {
      by_place(inputs[0], Role::kQ);
      by_place(inputs[1], Role::kK);
      by_place(inputs[2], Role::kV);
    } else if (inputs.empty() && outputs.size() == 4 && !has(Role::kO)) {
      for (std::size_t i = 0; i < 4; ++i)
        by_place(outputs[i], std::array{Role::kQ, Role::kK, Role::kV, Role::kO}[i]);
      return out;
    }
  }
  // "inp" of a layer that knows its width and heads, as (B, T, 3C).
  if (!has(Role::kQ) && !has(Role::kQkv) && inputs.size() == 1 && has(Role::kHidden) &&
      has(Role::kHeads)) {
    const std::string& name = parameters[inputs[0]].name;
    if (name == "inp" || name == "input" || name == "in" || name == "x")
      out[inputs[0]] = {Role::kQkv, "", "the only input, of a width that is a parameter"};
  }
  if (!has(Role::kO) && outputs.size() == 1 && has(Role::kQ)) by_place(outputs[0], Role::kO);
  settle_last(parameters, out);
  return out;
}

}  // namespace attn_diag::adapt
