#include "harness/adapt/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace attn_diag::adapt {
namespace {

using Names = std::set<std::string>;

// "q_seq_len" and "qSeqLen" alike: q, seq, len.
std::vector<std::string> split_name(const std::string& name) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool upper = std::isupper(c) != 0;
    const bool before_lower = i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (c == '_' || (upper && before_lower)) {
      if (!parts.back().empty()) parts.emplace_back();
      if (c == '_') continue;
    }
    parts.back() += static_cast<char>(std::tolower(c));
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

std::string join(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += part;
  return out;
}

// Without what says only that it is a pointer, in device memory, an input.
std::string tensor_name(const std::string& name) {
  static const Names noise = {"d",     "g",    "gm",  "dev",    "device", "ptr",    "p",
                              "h",     "gmem", "gpu", "host",   "in",     "tensor", "data",
                              "input", "base", "mem", "global", "mat",    "matrix", "arr"};
  std::vector<std::string> parts = split_name(name);
  while (parts.size() > 1 && noise.count(parts.front()) > 0) parts.erase(parts.begin());
  while (parts.size() > 1 && noise.count(parts.back()) > 0) parts.pop_back();
  return join(parts);
}

bool any(const std::vector<std::string>& parts, const Names& names) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return names.count(part) > 0; });
}

Role tensor_role(const std::string& name) {
  const std::vector<std::string> parts = split_name(name);
  if (any(parts, {"grad", "dout", "dq", "dk", "dv", "do"}) && name != "d_o") return Role::kGradient;
  if (name.size() == 2 && name[0] == 'd' && std::string("QKVO").find(name[1]) != std::string::npos)
    return Role::kGradient;  // or device memory: classify() looks at the others
  const std::string n = tensor_name(name);
  if (any(parts,
          {"partial", "partials", "part", "split", "splits", "accum", "acc", "mid", "chunk"}) ||
      n == "oaccum" || n == "otmp" || n == "tmpo" || n == "tmpout") {
    if (n.find("lse") != std::string::npos) return Role::kPartialLse;
    if (any(parts, {"m", "max", "maxes"})) return Role::kPartialMax;
    if (any(parts, {"l", "sum", "sums", "denom"})) return Role::kPartialSum;
    if (any(parts, {"o", "out", "output"}) || n == "oaccum" || n == "otmp" || n == "tmpo" ||
        n == "tmpout" || n == "opartial" || n == "acco")
      return Role::kPartialO;
    return Role::kWorkspace;
  }
  static const std::map<Role, Names> table = {
      {Role::kQ, {"q", "query", "queries", "qs", "xq", "qproj", "qvec"}},
      {Role::kK, {"k", "key", "keys", "ks", "xk", "kcache", "keycache", "kt", "cachek"}},
      {Role::kV,
       {"v", "value", "values", "vs", "xv", "val", "vals", "vcache", "valuecache", "cachev"}},
      {Role::kO,
       {"o", "out", "output", "outputs", "result", "res", "attnout", "attnoutput", "context", "ctx",
        "os", "y", "dst", "attentionout", "attentionoutput", "outo", "oout"}},
      {Role::kLse, {"lse", "softmaxlse", "logsumexp", "lseout", "outlse", "logsum", "lsum"}},
      {Role::kQkv, {"qkv", "qkvpacked", "packedqkv"}},
      {Role::kKv, {"kv", "kvpacked", "packedkv", "kvcache"}},
      {Role::kRowMax,
       {"m", "rowmax", "rowm", "max", "maxes", "rowmaxes", "mi", "maxval", "softmaxmax"}},
      {Role::kRowSum,
       {"l", "rowsum", "rowl", "sum", "sums", "rowsums", "li", "denom", "norm", "softmaxsum"}},
      {Role::kScores,
       {"s", "scores", "score", "attnscores", "qk", "logits", "preatt", "preattn",
        "attentionscores", "qkt"}},
      {Role::kProbs,
       {"p", "probs", "prob", "attnweights", "weights", "att", "attn", "softmaxout", "attnprobs",
        "attention"}},
      {Role::kWorkspace, {"workspace", "ws", "scratch", "tmp", "temp", "buffer", "buf"}},
      {Role::kOptionalTensor,
       {"mask", "attnmask", "bias", "attnbias", "alibislopes", "slopes", "rngstate", "seed",
        "offset", "keypaddingmask"}},
      {Role::kPaged,
       {"blocktable", "blocktables", "cuseqlensq", "cuseqlensk", "cuseqlens", "seqlens",
        "contextlens", "seqlensk", "slotmapping", "indptr", "kvindices", "kvindptr", "seqlensq",
        "lengths"}}};
  for (const auto& [role, names] : table)
    if (names.count(n) > 0) return role;
  return Role::kUnknown;
}

Role size_role(const std::string& name) {
  const std::string n = join(split_name(name));
  static const std::map<Role, Names> table = {
      {Role::kBatch,
       {"b", "batch", "batchsize", "bs", "bsz", "nbatch", "numbatch", "numbatches", "batches",
        "nbatches", "batchcount", "bz"}},
      {Role::kHeads,
       {"h",         "heads",     "numheads",          "nheads",  "nh",  "nhead",  "headnum",
        "numheadsq", "nheadsq",   "numqheads",         "nqheads", "hq",  "qheads", "numqoheads",
        "qoheads",   "headcount", "numattentionheads", "nheadq",  "hqo", "headsq", "qhead",
        "qh",        "nhq"}},
      {Role::kKvHeads,
       {"hk", "hkv", "kvheads", "numkvheads", "nkvheads", "nheadskv", "nheadsk", "numheadskv",
        "numheadsk", "nkvhead", "kvh", "nhkv", "kvheadnum", "headskv", "nheadkv",
        "numkeyvalueheads", "kvhead", "nkv", "nhk"}},
      {Role::kGroup,
       {"groupsize", "nrep", "gqaratio", "kvgroups", "numkvgroups", "group", "qperkv", "hhkratio",
        "headspergroup", "headsperkv", "gqagroupsize", "queriesperkv"}},
      {Role::kSeqlen,
       {"n", "s", "t", "seqlen", "seqlength", "seq", "length", "len", "sequencelength", "nseq",
        "numtokens", "ntokens", "seqsize", "sl", "nctx", "tokens", "contextlength", "l"}},
      {Role::kSeqlenQ,
       {"sq",    "seqlenq",    "qlen",   "qlength",    "lenq",    "seqq",     "nq", "qseqlen",
        "lq",    "numqueries", "tgtlen", "seqlengthq", "qseq",    "nqueries", "m",  "tq",
        "slenq", "qsize",      "nctxq",  "seqq",       "queries", "rows"}},
      {Role::kSeqlenK,
       {"sk",     "seqlenk", "seqlenkv",    "kvlen",  "kvlength",   "klen",     "lenk",
        "lenkv",  "seqk",    "seqkv",       "nk",     "nkv_",       "kvseqlen", "kseqlen",
        "lk",     "lkv",     "numkeys",     "srclen", "contextlen", "cachelen", "seqlengthk",
        "kvseq",  "nkeys",   "skv",         "tk",     "tkv",        "slenk",    "slenkv",
        "kvsize", "nctxk",   "contextsize", "keys",   "pastlen"}},
      {Role::kHeadDim,
       {"d",          "headdim",     "dim",       "dhead",     "hd",   "dk",      "headsize",
        "dh",         "hdim",        "qkdim",     "headdimqk", "dqk",  "dimhead", "e",
        "dimperhead", "sizeperhead", "khead_dim", "kheaddim",  "kdim", "kd"}},
      {Role::kHeadDimV, {"dv", "headdimv", "vdim", "dimv", "headdimvo", "dvo", "headsizev"}},
      {Role::kBatchHeads,
       {"bh", "batchheads", "numbh", "nbh", "batchxheads", "totalheads", "bxh", "batchhead", "numheadstotal", "totalnumheads", "headstotal", "bnh",
        "batchnheads", "batchnumheads", "z", "numslices"}},
      {Role::kHidden,
       {"hidden", "hiddensize", "hiddendim", "dmodel", "embeddim", "embed", "c", "nembd",
        "channels", "modeldim", "hiddenstates", "emb"}},
      {Role::kNumSplits,
       {"numsplits", "nsplits", "splits", "numchunks", "nchunks", "splitk", "kvsplits",
        "numkvsplits", "numparts", "numpartitions", "nsplit", "ksplits", "splitkv"}},
      {Role::kSplitLength,
       {"splitlen", "chunksize", "splitsize", "keyspersplit", "partitionsize", "chunklen",
        "kvpersplit", "splitlength", "kvchunksize"}},
      {Role::kTileM,
       {"br",         "blockm",   "bm",        "tilem",      "blockq",       "bq",
        "kblockm",    "tileq",    "blockrows", "blocksizem", "blocksizeq",   "qtile",
        "kbr",        "mtile",    "tilesizeq", "blocksizer", "rowsperblock", "queriesperblock",
        "ktilem",     "kbm",      "ctaq",      "qblock",     "kbq",          "ktileq",
        "qblocksize", "tilerows", "ctam",      "kqtile"}},
      {Role::kTileN,
       {"bc",        "blockn", "bn",      "tilen",       "blockk",       "bk",
        "kblockn",   "tilek",  "blockkv", "blocksizen",  "blocksizek",   "kvtile",
        "kbc",       "ntile",  "tilekv",  "tilesizek",   "bkv",          "blocksizec",
        "blockcols", "ktilen", "kbn",     "ktile",       "kvblock",      "kbk",
        "ktilek",    "kbkv",   "ktilekv", "kvblocksize", "keysperblock", "keyspertile",
        "ctan",      "ctakv",  "kkvtile", "kkeytile",    "tilecols",     "tilekeys"}},
      {Role::kTilesM,
       {"tr", "numqtiles", "nqblocks", "numqblocks", "numrowblocks", "numblocksm", "nqtiles",
        "mblocks"}},
      {Role::kTilesN,
       {"tc", "numkvtiles", "nkvblocks", "numkvblocks", "numcolblocks", "numblocksn", "nkvtiles",
        "numtiles", "ntiles", "nblocks"}},
      {Role::kCount, {"size", "total", "numel", "numelements", "count", "nelem"}},
      {Role::kCausal,
       {"causal", "iscausal", "usecausal", "causalmask", "kcausal", "kiscausal", "docausal",
        "withcausal", "applycausal", "usecausalmask", "applycausalmask", "usemask", "ismasked",
        "masked"}},
      {Role::kWindowLeft, {"windowleft", "windowsizeleft", "leftwindow", "wl"}},
      {Role::kWindowRight, {"windowright", "windowsizeright", "rightwindow", "wr"}}};
  for (const auto& [role, names] : table)
    if (names.count(n) > 0) return role;
  return Role::kUnknown;
}

Role number_role(const std::string& name) {
  const std::vector<std::string> parts = split_name(name);
  const std::string n = join(parts);
  if (any(parts, {"dropout"}) || n == "pdrop" || n == "pdropout") return Role::kDropout;
  if (n.find("scale") != std::string::npos || n.find("scaling") != std::string::npos ||
      n == "invsqrtd" || n == "rsqrtd" || n == "normfactor" || n == "smscale" || n == "alpha" ||
      n == "invsqrtdk" || n == "rsqrtdim" || n == "invsqrtheaddim" || n == "tau" ||
      n == "qkfactor" || n == "factor")
    return n.find("log2") != std::string::npos || n.find("exp2") != std::string::npos
               ? Role::kScaleLog2
               : Role::kScale;
  return Role::kUnknown;
}

// "q_batch_stride", "stride_kh", "q_stride_b", "strideQ", "ldq": "q batch" and so on; "" if it is none.
std::string stride_of(const std::string& name) {
  std::vector<std::string> parts = split_name(name);
  if (parts.size() == 1 && parts[0].size() == 3 && parts[0].substr(0, 2) == "ld")
    parts = {"stride", parts[0].substr(2), "seq"};
  const auto word = std::find_if(parts.begin(), parts.end(), [](const std::string& p) {
    return p == "stride" || p == "strides" || p == "strd" || p == "ld";
  });
  if (word == parts.end()) return "";
  parts.erase(word);
  std::string tensor, axis;
  const auto axis_of = [](const std::string& p) -> std::string {
    static const std::map<std::string, std::string> axes = {
        {"b", "batch"},    {"z", "batch"},    {"batch", "batch"}, {"h", "head"}, {"head", "head"},
        {"heads", "head"}, {"s", "seq"},      {"n", "seq"},       {"m", "seq"},  {"row", "seq"},
        {"seq", "seq"},    {"seqlen", "seq"}, {"token", "seq"},   {"t", "seq"},  {"l", "seq"},
        {"d", "dim"},      {"dim", "dim"},    {"col", "dim"},     {"k", "dim"},  {"rows", "seq"},
        {"bs", "batch"}};
    const auto found = axes.find(p);
    return found == axes.end() ? "" : found->second;
  };
  const auto is_one = [](const std::string& p) {
    return p == "q" || p == "k" || p == "v" || p == "o" || p == "out" || p == "kv" ||
           p == "query" || p == "key" || p == "value";
  };
  for (std::string p : parts) {
    // "qh": tensor and axis in one.
    if (tensor.empty() && p.size() == 2 && is_one(p.substr(0, 1)) &&
        !axis_of(p.substr(1)).empty() && !is_one(p)) {
      tensor = p.substr(0, 1);
      axis = axis_of(p.substr(1));
    } else if (tensor.empty() && is_one(p)) {
      tensor = p == "kv" ? "k" : p.substr(0, 1);
    } else if (axis.empty()) {
      axis = axis_of(p);
    }
  }
  if (axis.empty()) return "";
  return (tensor.empty() ? "q" : tensor) + " " + axis;
}

bool is_integer(const std::string& element) {
  static const Names types = {"int",          "unsigned",      "unsigned int",
                              "long",         "long long",     "size_t",
                              "int32_t",      "int64_t",       "uint32_t",
                              "uint64_t",     "std::size_t",   "short",
                              "std::int32_t", "std::int64_t",  "index_t",
                              "uint",         "unsigned long", "const int",
                              "Index",        "std::uint32_t", "unsigned long long"};
  return types.count(element) > 0;
}

Classified classify_one(const Parameter& p) {
  Classified out;
  if (p.element == "cudaStream_t" || p.element == "at::cuda::CUDAStream" ||
      p.element == "CUstream") {
    out.role = Role::kStream;
    return out;
  }
  const bool tensor_class = p.element.ends_with("Tensor") || p.element.ends_with("Tensor>");
  if (p.is_pointer || tensor_class) {
    out.role = is_integer(p.element) && !tensor_class ? Role::kPaged : tensor_role(p.name);
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
  if (p.element == "bool" && out.role != Role::kCausal) out.role = Role::kUnknown;
  return out;
}

}  // namespace

Classified classify_size(const std::string& name) {
  Classified out;
  out.stride = stride_of(name);
  out.role = out.stride.empty() ? size_role(name) : Role::kStride;
  return out;
}

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

  // Heads alone are all there are.
  if (!has(Role::kBatch) && !has(Role::kStride) && !has(Role::kHidden))
    each([](const Parameter& p, Classified& c) {
      if (c.role != Role::kHeads || p.is_pointer) return;
      c.role = Role::kBatchHeads;
      c.guess = "of all batches together, as no parameter is a batch size";
    });

  // Sizes that mean another thing beside others.
  each([&](const Parameter& p, Classified& c) {
    if (p.is_pointer) return;
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
  // "n" and "k" beside "seqlen" ...: the first by name wins, a second of the same role is not known.
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool one_only = out[i].role != Role::kUnknown && out[i].role != Role::kStride &&
                            out[i].role != Role::kOptionalTensor && out[i].role != Role::kPaged &&
                            out[i].role != Role::kWorkspace && out[i].role != Role::kGradient;
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
  if (!has(Role::kO) && outputs.size() == 1 && has(Role::kQ)) by_place(outputs[0], Role::kO);
  return out;
}

bool is_tensor(Role role) { return role >= Role::kQ && role <= Role::kPaged; }

const char* words(Role role) {
  switch (role) {
    case Role::kUnknown:
      return "unknown";
    case Role::kQ:
      return "Q";
    case Role::kK:
      return "K";
    case Role::kV:
      return "V";
    case Role::kO:
      return "the output";
    case Role::kLse:
      return "the log-sum-exp";
    case Role::kQkv:
      return "packed Q, K and V";
    case Role::kKv:
      return "packed K and V";
    case Role::kRowMax:
      return "row maxima kept in memory";
    case Role::kRowSum:
      return "row sums kept in memory";
    case Role::kScores:
      return "scores in memory";
    case Role::kProbs:
      return "probabilities in memory";
    case Role::kPartialO:
      return "partial outputs of the splits";
    case Role::kPartialLse:
      return "log-sum-exps of the splits";
    case Role::kPartialMax:
      return "row maxima of the splits";
    case Role::kPartialSum:
      return "row sums of the splits";
    case Role::kWorkspace:
      return "a workspace";
    case Role::kGradient:
      return "a gradient";
    case Role::kOptionalTensor:
      return "an optional tensor";
    case Role::kPaged:
      return "an array of integers";
    case Role::kBatch:
      return "the batch size";
    case Role::kHeads:
      return "the number of heads";
    case Role::kKvHeads:
      return "the number of KV heads";
    case Role::kGroup:
      return "query heads per KV head";
    case Role::kSeqlen:
      return "the sequence length";
    case Role::kSeqlenQ:
      return "the number of queries";
    case Role::kSeqlenK:
      return "the number of keys";
    case Role::kHeadDim:
      return "the head dimension";
    case Role::kHeadDimV:
      return "the head dimension of V";
    case Role::kBatchHeads:
      return "batch times heads";
    case Role::kHidden:
      return "heads times head dimension";
    case Role::kNumSplits:
      return "the number of splits";
    case Role::kSplitLength:
      return "keys per split";
    case Role::kTileM:
      return "queries per tile";
    case Role::kTileN:
      return "keys per tile";
    case Role::kTilesM:
      return "the number of query tiles";
    case Role::kTilesN:
      return "the number of KV tiles";
    case Role::kCount:
      return "a number of elements";
    case Role::kScale:
      return "the softmax scale";
    case Role::kScaleLog2:
      return "the softmax scale times log2 e";
    case Role::kCausal:
      return "whether the mask is causal";
    case Role::kWindowLeft:
      return "the window to the left";
    case Role::kWindowRight:
      return "the window to the right";
    case Role::kDropout:
      return "the dropout probability";
    case Role::kStride:
      return "a stride";
    case Role::kStream:
      return "the stream";
  }
  return "";
}

std::string dtype_of(const std::string& element) {
  static const std::map<std::string, std::string> types = {{"half", "fp16"},
                                                           {"__half", "fp16"},
                                                           {"at::Half", "fp16"},
                                                           {"c10::Half", "fp16"},
                                                           {"half2", "fp16"},
                                                           {"__half2", "fp16"},
                                                           {"cutlass::half_t", "fp16"},
                                                           {"half_t", "fp16"},
                                                           {"nv_bfloat16", "bf16"},
                                                           {"__nv_bfloat16", "bf16"},
                                                           {"at::BFloat16", "bf16"},
                                                           {"nv_bfloat162", "bf16"},
                                                           {"__nv_bfloat162", "bf16"},
                                                           {"cutlass::bfloat16_t", "bf16"},
                                                           {"c10::BFloat16", "bf16"},
                                                           {"bfloat16_t", "bf16"},
                                                           {"float", "fp32"},
                                                           {"float4", "fp32"},
                                                           {"float2", "fp32"},
                                                           {"half_raw", "fp16"}};
  const auto found = types.find(element);
  return found == types.end() ? "" : found->second;
}

}  // namespace attn_diag::adapt
