#include "harness/toolchain/adapt/role_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace attn_diag::adapt {
namespace {

using Names = std::set<std::string>;

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

}  // namespace

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
      {Role::kQ, {"q", "query", "queries", "qs", "xq", "qproj", "qvec", "sq"}},
      {Role::kK,
       {"k", "key", "keys", "ks", "xk", "kcache", "keycache", "kt", "cachek", "kpool", "keypool",
        "kblockpool", "kblocks", "kpages"}},
      {Role::kV,
       {"v", "value", "values", "vs", "xv", "val", "vals", "vcache", "valuecache", "cachev",
        "vpool", "valuepool", "vblockpool", "vblocks", "vpages"}},
      {Role::kO, {"o",       "out",        "output",  "outputs", "result",       "res",
                  "attnout", "attnoutput", "context", "ctx",     "os",           "y",
                  "dst",     "xb",         "sxb",     "xo",      "attentionout", "attentionoutput",
                  "outo",    "oout"}},
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
       {"p", "probs", "prob", "attnweights", "weights", "att", "satt", "attn", "softmaxout",
        "attnprobs", "attention"}},
      {Role::kWorkspace, {"workspace", "ws", "scratch", "tmp", "temp", "buffer", "buf"}},
      {Role::kOptionalTensor,
       {"mask", "attnmask", "bias", "attnbias", "alibislopes", "slopes", "rngstate", "seed",
        "offset", "keypaddingmask"}}};
  for (const auto& [role, names] : table)
    if (names.count(n) > 0) return role;
  return Role::kUnknown;
}

bool is_about_keys(const std::string& name) {
  return any(split_name(name), {"k", "kv", "keys", "key", "seqlensk", "seqlenk"});
}

bool is_about_queries(const std::string& name) {
  return any(split_name(name), {"q", "queries", "query", "qo", "seqlensq", "seqlenq"});
}

bool is_page_table(const std::string& name) {
  const std::string n = join(split_name(name));
  for (const char* word : {"blocktable", "pagetable", "blocktab", "pagestable", "pageindices",
                           "blockindices", "blockids", "pageids", "blocklist", "pagelist"})
    if (n.find(word) != std::string::npos) return true;
  return false;
}

Role integers_role(const std::string& name) {
  const std::string n = join(split_name(name));
  const auto holds = [&](const char* word) { return n.find(word) != std::string::npos; };
  if (holds("cuseq") || holds("culen") || holds("indptr") || holds("cumseq") || n == "seqoffsets" ||
      n == "seqstarts")
    return Role::kOffsets;
  if (holds("seqlens") || holds("contextlens") || holds("kvlens") || n == "lengths" ||
      n == "seqlengths" || n == "kvlengths" || n == "qlens" || n == "klens" || n == "lens" ||
      n == "contextlengths" || n == "cachelens" || n == "cacheseqlens" || holds("lengthper") ||
      holds("sequencelengths") || holds("lensper"))
    return Role::kLengths;
  return Role::kPaged;
}

namespace {

Role size_role_of(const std::string& n) {
  static const std::map<Role, Names> table = {
      {Role::kBatch,
       {"b", "batch", "batchsize", "bs", "bsz", "nbatch", "numbatch", "numbatches", "batches",
        "nbatches", "batchcount", "bz", "nb", "numseqs", "nseqs", "numsequences"}},
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
        "headspergroup", "headsperkv", "kvmul", "gqagroupsize", "queriesperkv"}},
      {Role::kSeqlen,
       {"n",
        "s",
        "t",
        "seqlen",
        "seqlength",
        "seq",
        "length",
        "len",
        "sequencelength",
        "nseq",
        "numtokens",
        "ntokens",
        "seqsize",
        "sl",
        "nctx",
        "tokens",
        "contextlength",
        "l",
        "maxseqlen",
        "maxseq",
        "maxlen",
        "maxseqlength",
        "maxs"}},
      {Role::kTokens,
       {"totaltokens", "totalq", "totalseqlen", "totalseqlenq", "totalrows", "totalqlen"}},
      {Role::kSeqlenQ,
       {"sq",      "seqlenq", "qlen",       "qlength", "lenq",       "seqq",  "nq",
        "qseqlen", "lq",      "numqueries", "tgtlen",  "seqlengthq", "qseq",  "nqueries",
        "m",       "tq",      "maxseqlenq", "maxqlen", "maxq",       "slenq", "qsize",
        "nctxq",   "seqq",    "queries",    "rows",    "tdec"}},
      {Role::kSeqlenK, {"sk",          "seqlenk",  "seqlenkv",    "kvlen",         "kvlength",
                        "klen",        "lenk",     "lenkv",       "seqk",          "seqkv",
                        "nk",          "nkv_",     "kvseqlen",    "kseqlen",       "maxseqlenk",
                        "maxseqlenkv", "maxkvlen", "maxklen",     "maxcontextlen", "maxctxlen",
                        "kvmaxlen",    "lk",       "lkv",         "numkeys",       "srclen",
                        "contextlen",  "cachelen", "seqlengthk",  "kvseq",         "nkeys",
                        "skv",         "tk",       "tkv",         "slenk",         "slenkv",
                        "kvsize",      "nctxk",    "contextsize", "keys",          "pastlen",
                        "tenc",        "cols"}},
      {Role::kHeadDim,
       {"d",          "headdim",     "dim",   "dhead",     "hd",       "dk",        "headsize",
        "dh",         "hdim",        "qkdim", "headdimqk", "dqk",      "dimhead",   "e",
        "dimperhead", "sizeperhead", "hsize", "hsz",       "headsz",   "khead_dim", "kheaddim",
        "kdim",       "kd",          "hs",    "headembd",  "embdhead", "dkv"}},
      {Role::kHeadDimV, {"dv", "headdimv", "vdim", "dimv", "headdimvo", "dvo", "headsizev"}},
      {Role::kBatchHeads,
       {"bh", "batchheads", "numbh", "nbh", "batchxheads", "totalheads", "bxh", "batchhead",
        "numheadstotal", "totalnumheads", "headstotal", "bnh", "batchnheads", "batchnumheads", "z",
        "numslices"}},
      {Role::kHidden,
       {"hidden", "hiddensize", "hiddendim", "dmodel", "embeddim", "embed", "c", "nembd",
        "channels", "modeldim", "hiddenstates", "emb"}},
      {Role::kNumSplits,
       {"numsplits", "nsplits", "splits", "numchunks", "nchunks", "splitk", "kvsplits",
        "numkvsplits", "numparts", "numpartitions", "nsplit", "ksplits", "splitkv"}},
      {Role::kSplitLength,
       {"splitlen", "chunksize", "splitsize", "keyspersplit", "partitionsize", "chunklen",
        "kvpersplit", "splitlength", "kvchunksize"}},
      {Role::kPageSize,
       {"blocksize", "pagesize", "pageblocksize", "blocklen", "tokensperblock", "tokensperpage",
        "pagelen", "cacheblocksize"}},
      {Role::kPagesPerBatch,
       {"maxnumblocksperseq", "maxblocksperseq", "maxpages", "maxnumpages", "blocktablestride",
        "tablestride", "maxblocks", "maxpagesperseq", "maxnumblocks", "maxnumpagesperseq",
        "maxblocksperrequest", "maxblocksperbatch", "blocktablebatchstride", "pagesperseq",
        "blocksperseq"}},
      {Role::kPages, {"numpages", "totalpages", "npages", "numphysicalblocks"}},
      {Role::kPosition, {"pos", "position", "curpos", "stepidx", "timestep"}},
      {Role::kKvHidden, {"kvdim", "kvhidden", "kvwidth"}},
      {Role::kZero, {"loff", "layeroffset", "layeroff"}},
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
      {Role::kIsFp16, {"isfp16", "fp16", "ishalf", "usefp16", "usehalf"}},
      {Role::kIsBf16, {"isbf16", "bf16", "usebf16", "isbfloat16"}},
      {Role::kWindow,
       {"window", "windowsize", "slidingwindow", "windowlen", "swasize", "localwindow"}},
      {Role::kWindowLeft, {"windowleft", "windowsizeleft", "leftwindow", "wl", "left"}},
      {Role::kWindowRight, {"windowright", "windowsizeright", "rightwindow", "wr", "right"}}};
  for (const auto& [role, names] : table)
    if (names.count(n) > 0) return role;
  return Role::kUnknown;
}

// "key_value_heads" and "KEY_TILE_SIZE" as "kv_heads" and "k_tile".
std::string with_short_words(const std::string& name) {
  std::vector<std::string> parts;
  for (const std::string& part : split_name(name)) {
    const bool of_keys = !parts.empty() && parts.back() == "k";
    if (part == "query" || part == "queries")
      parts.emplace_back("q");
    else if (part == "key" || part == "keys")
      parts.emplace_back("k");
    else if (of_keys && (part == "value" || part == "values"))
      parts.back() = "kv";
    else
      parts.push_back(part);
  }
  if (parts.size() > 2 && parts.back() == "size") parts.pop_back();
  return join(parts);
}

}  // namespace

Role size_role(const std::string& name) {
  const Role role = size_role_of(join(split_name(name)));
  return role != Role::kUnknown ? role : size_role_of(with_short_words(name));
}
Role number_role(const std::string& name) {
  const std::vector<std::string> parts = split_name(name);
  const std::string n = join(parts);
  if (any(parts, {"dropout"}) || n == "pdrop" || n == "pdropout") return Role::kDropout;
  if (n.find("scale") != std::string::npos || n.find("scaling") != std::string::npos ||
      n == "invsqrtd" || n == "rsqrtd" || n == "normfactor" || n == "smscale" || n == "alpha" ||
      n == "invsqrtdk" || n == "rsqrtdim" || n == "invsqrtheaddim" || n == "tau" ||
      n == "qkfactor" || n == "factor" || n == "sc" || n.find("invsqrt") != std::string::npos ||
      n.find("rsqrt") != std::string::npos)
    return n.find("log2") != std::string::npos || n.find("exp2") != std::string::npos
               ? Role::kScaleLog2
               : Role::kScale;
  return Role::kUnknown;
}

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

bool is_tensor(Role role) { return role >= Role::kQ && role <= Role::kLengths; }

const char* words(Role role) {
  static const std::map<Role, const char*> table = {
      {Role::kUnknown, "unknown"},
      {Role::kQ, "Q"},
      {Role::kK, "K"},
      {Role::kV, "V"},
      {Role::kO, "the output"},
      {Role::kLse, "the log-sum-exp"},
      {Role::kQkv, "packed Q, K and V"},
      {Role::kKv, "packed K and V"},
      {Role::kRowMax, "row maxima kept in memory"},
      {Role::kRowSum, "row sums kept in memory"},
      {Role::kScores, "scores in memory"},
      {Role::kProbs, "probabilities in memory"},
      {Role::kPartialO, "partial outputs of the splits"},
      {Role::kPartialLse, "log-sum-exps of the splits"},
      {Role::kPartialMax, "row maxima of the splits"},
      {Role::kPartialSum, "row sums of the splits"},
      {Role::kWorkspace, "a workspace"},
      {Role::kGradient, "a gradient"},
      {Role::kOptionalTensor, "an optional tensor"},
      {Role::kPaged, "an array of integers"},
      {Role::kOffsets, "where batches begin among the rows"},
      {Role::kLengths, "the lengths of the batches"},
      {Role::kBatch, "the batch size"},
      {Role::kHeads, "the number of heads"},
      {Role::kKvHeads, "the number of KV heads"},
      {Role::kGroup, "query heads per KV head"},
      {Role::kSeqlen, "the sequence length"},
      {Role::kSeqlenQ, "the number of queries"},
      {Role::kSeqlenK, "the number of keys"},
      {Role::kTokens, "the number of rows of all batches"},
      {Role::kHeadDim, "the head dimension"},
      {Role::kHeadDimV, "the head dimension of V"},
      {Role::kBatchHeads, "batch times heads"},
      {Role::kHidden, "heads times head dimension"},
      {Role::kNumSplits, "the number of splits"},
      {Role::kSplitLength, "keys per split"},
      {Role::kPageSize, "tokens per page of the cache"},
      {Role::kPagesPerBatch, "pages per batch"},
      {Role::kPages, "the number of pages"},
      {Role::kPosition, "the position of the query"},
      {Role::kKvHidden, "KV heads times head dimension"},
      {Role::kZero, "where this layer's cache begins"},
      {Role::kTileM, "queries per tile"},
      {Role::kTileN, "keys per tile"},
      {Role::kTilesM, "the number of query tiles"},
      {Role::kTilesN, "the number of KV tiles"},
      {Role::kCount, "a number of elements"},
      {Role::kScale, "the softmax scale"},
      {Role::kScaleLog2, "the softmax scale times log2 e"},
      {Role::kUnitScale, "a scale of quantised values"},
      {Role::kCodeScale, "scales of codes"},
      {Role::kCodeZero, "zeros of codes"},
      {Role::kCausal, "whether the mask is causal"},
      {Role::kWindowLeft, "the window to the left"},
      {Role::kWindowRight, "the window to the right"},
      {Role::kWindow, "the width of the window"},
      {Role::kDropout, "the dropout probability"},
      {Role::kIsFp16, "whether elements are fp16"},
      {Role::kIsBf16, "whether elements are bf16"},
      {Role::kStride, "a stride"},
      {Role::kStream, "the stream"}};
  return table.at(role);
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
