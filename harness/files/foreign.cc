// From arrays to a case.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "attn_diag/harness/check_problem.h"
#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/files.h"
#include "harness/capture/capture_fields.h"
#include "harness/dump/hdf5_document.h"
#include "harness/files/array.h"
#include "harness/files/roles.h"
#include "harness/files/said.h"
#include "harness/files/shapes.h"

namespace attn_diag {
namespace {

using files::Array;
using Arrays = std::array<const Array*, kNumForeignRoles>;

constexpr std::array kInputs = {ForeignRole::kQ, ForeignRole::kK, ForeignRole::kV};

bool is_dump(const std::string& path) {
  if (!is_hdf5_file(path)) return false;
  try {
    const Hdf5Document document(path);
    std::string schema;
    read_attribute(document.root(), "schema", schema);
    return schema.starts_with("attn-diag/");
  } catch (const Error&) {
    return false;  // read_any() says what is wrong with it
  }
}

// Cells of an array, with their type.
struct Cells {
  DType dtype = DType::kFp32;
  std::vector<std::byte> bytes;
  std::int64_t size() const { return static_cast<std::int64_t>(bytes.size() / size_of(dtype)); }
  double at(std::int64_t i) const { return load_element(bytes.data(), dtype, i); }
};

void require_readable(const Array& array, ForeignRole role) {
  if (!array.unreadable.empty())
    throw Error(fmt::format("{} is {}. {}", name(role), array.text(), array.unreadable));
}

Cells load(const Array& array, ForeignRole role, const ForeignHints& hints) {
  Cells cells;
  if (array.dtype) {
    cells.dtype = *array.dtype;
  } else if (array.opaque16 && hints.dtype == DType::kBf16) {
    cells.dtype = DType::kBf16;
  } else {
    throw Error(fmt::format("{} is {}; expected fp16, bf16, fp32 or fp64.{}", name(role),
                            array.text(),
                            array.opaque16 ? " If these 16 bits are bf16, say --dtype bf16." : ""));
  }
  cells.bytes = array.load();
  return cells;
}

bool exact_in(const Cells& cells, DType dtype) {
  if (size_of(dtype) > size_of(cells.dtype) || dtype == cells.dtype) return true;
  std::array<std::byte, 8> one{};
  for (std::int64_t i = 0; i < cells.size(); ++i) {
    const double x = cells.at(i);
    store_element(one.data(), dtype, 0, x);
    if (load_element(one.data(), dtype, 0) != x && !std::isnan(x)) return false;
  }
  return true;
}

Cells converted(Cells cells, DType dtype) {
  if (cells.dtype == dtype) return cells;
  Cells out{dtype, std::vector<std::byte>(static_cast<std::size_t>(cells.size()) * size_of(dtype))};
  for (std::int64_t i = 0; i < cells.size(); ++i)
    store_element(out.bytes.data(), dtype, i, cells.at(i));
  return out;
}

// q, k and v in one type: what the user says, else q's, but never wider than fp32.
void set_inputs(const Arrays& arrays, const ForeignHints& hints, ForeignCase& to) {
  Problem& p = to.capture.problem;
  std::array<Cells, kInputs.size()> cells;
  for (std::size_t i = 0; i < kInputs.size(); ++i) cells[i] = load(*arrays[i], kInputs[i], hints);
  p.dtype = hints.dtype.value_or(std::min(cells[0].dtype, DType::kFp32));
  for (std::size_t i = 0; i < kInputs.size(); ++i)
    if (!exact_in(cells[i], p.dtype))
      throw Error(
          fmt::format("{} is {} and holds numbers that {} cannot hold, so they are not what a "
                      "kernel with {} inputs got. "
                      "Save what it got, or say --dtype of the kernel's inputs.",
                      name(kInputs[i]), arrays[i]->text(), text(p.dtype), text(p.dtype)));
  const auto all_exact = [&](DType dtype) {
    return std::all_of(cells.begin(), cells.end(),
                       [&](const Cells& c) { return exact_in(c, dtype); });
  };
  if (p.dtype == DType::kFp32 && !hints.dtype) {
    for (const DType narrow : {DType::kFp16, DType::kBf16}) {
      if (!all_exact(narrow)) continue;
      to.assumed.push_back(
          fmt::format("inputs fp32 (all of them are exact in {0}: if the kernel got {0}, say "
                      "--dtype {0})",
                      text(narrow)));
      break;
    }
  }
  const std::array<SharedBytes*, kInputs.size()> into = {&to.capture.q, &to.capture.k,
                                                         &to.capture.v};
  for (std::size_t i = 0; i < kInputs.size(); ++i)
    *into[i] = std::move(converted(std::move(cells[i]), p.dtype).bytes);
}

TensorData output_tensor(Tensor t, DType dtype, std::vector<std::int64_t> shape) {
  TensorData data;
  data.id = t;
  data.dtype = dtype;
  data.shape = std::move(shape);
  data.origin.assign(data.shape.size(), 0);
  return data;
}

// o as [batch][head][query][dim]. What type the kernel gave it is the narrowest that holds it.
void set_output(const Array& array, const ForeignHints& hints, ForeignCase& to) {
  const Problem& p = to.capture.problem;
  Cells cells = load(array, ForeignRole::kO, hints);
  if (cells.dtype == DType::kFp64 && exact_in(cells, DType::kFp32))
    cells = converted(std::move(cells), DType::kFp32);
  DType stored = cells.dtype;
  for (const DType narrow : {p.dtype, DType::kFp16, DType::kBf16}) {
    if (size_of(narrow) >= size_of(stored) || !exact_in(cells, narrow)) continue;
    stored = narrow;
    to.assumed.push_back(fmt::format(
        "o rounded to {} by the kernel, since all of it is exact in that", text(stored)));
    break;
  }
  to.capture.arithmetic.output = stored;

  TensorData o =
      output_tensor(Tensor::kO, cells.dtype, {p.batch, p.heads, p.seqlen_q, p.head_dim_v});
  const Strides from = dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim_v);
  const std::size_t row = static_cast<std::size_t>(p.head_dim_v) * size_of(cells.dtype);
  o.bytes.resize(cells.bytes.size());
  std::byte* out = o.bytes.data();
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t s = 0; s < p.seqlen_q; ++s, out += row)
        std::memcpy(out,
                    cells.bytes.data() +
                        static_cast<std::size_t>(b * from.batch + h * from.head + s * from.seq) *
                            size_of(cells.dtype),
                    row);
  to.capture.tensors[static_cast<std::size_t>(Tensor::kO)] = std::move(o);
}

void set_lse(const Array& array, const files::Shapes& shapes, const ForeignHints& hints,
             ForeignCase& to) {
  const Problem& p = to.capture.problem;
  const Cells cells = load(array, ForeignRole::kLse, hints);
  TensorData lse = output_tensor(Tensor::kLse, cells.dtype, {p.batch, p.heads, p.seqlen_q});
  lse.bytes.resize(cells.bytes.size());
  std::int64_t out = 0;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t s = 0; s < p.seqlen_q; ++s)
        store_element(lse.bytes.data(), lse.dtype, out++,
                      cells.at(b * shapes.lse_strides[0] + h * shapes.lse_strides[1] +
                               s * shapes.lse_strides[2]));
  to.capture.tensors[static_cast<std::size_t>(Tensor::kLse)] = std::move(lse);
}

void set_bias(const Array& array, const ForeignHints& hints, ForeignCase& to) {
  files::understand_bias(array, to.capture.problem, to.extras.bias_batch, to.extras.bias_heads);
  const Cells cells = load(array, ForeignRole::kBias, hints);
  for (std::int64_t i = 0; i < cells.size(); ++i)
    to.extras.bias.push_back(static_cast<float>(cells.at(i)));
}

void guess_kernel(ForeignCase& to) {
  Capture& c = to.capture;
  c.geometry = unknown_geometry(c.problem);
  c.arithmetic = unknown_arithmetic(c.problem);
  to.assumed.push_back(fmt::format("fp32 sums as tensor cores round them, P rounded to {}",
                                   text(c.arithmetic.probs)));
}

ForeignCase from_dump(const std::string& path) {
  ForeignCase out;
  out.capture = read_dump(path);
  out.geometry_known = out.arithmetic_known = true;
  out.found.push_back(fmt::format("a dump of attn-diag: {}", path));
  return out;
}

ForeignCase from_arrays(const Arrays& arrays, const files::Settings& settings,
                        const ForeignHints& hints) {
  for (std::size_t i = 0; i < kNumForeignRoles; ++i)
    if (arrays[i] != nullptr) require_readable(*arrays[i], static_cast<ForeignRole>(i));
  const files::Said said = files::what_is_said(settings, hints);
  const files::Shapes shapes = files::understand_shapes(arrays, said.layout);
  ForeignCase out;
  for (std::size_t i = 0; i < kNumForeignRoles; ++i)
    if (arrays[i] != nullptr)
      out.found.push_back(
          fmt::format("{}: {}", name(static_cast<ForeignRole>(i)), arrays[i]->text()));
  if (!shapes.layout_assumed.empty()) out.assumed.push_back(shapes.layout_assumed);

  Capture& c = out.capture;
  c.problem = shapes.problem;
  Problem& p = c.problem;
  p.softmax_scale =
      static_cast<float>(said.softmax_scale.value_or(default_softmax_scale(p.head_dim)));
  if (!said.softmax_scale)
    out.assumed.push_back(fmt::format("softmax_scale {} (1/sqrt(head_dim))", p.softmax_scale));
  p.mask = files::mask_of(said.mask.value_or("none"), p.seqlen_q, p.seqlen_k);
  if (!said.mask) out.assumed.emplace_back("mask none");
  out.extras.softcap = said.softcap;
  out.kv_lens = said.kv_lens;
  if (!out.kv_lens.empty()) files::check_lengths(out.kv_lens, p, said.mask.value_or("none"));
  set_inputs(arrays, hints, out);
  check_problem(p);
  c.region = whole(p);
  guess_kernel(out);
  set_output(*arrays[static_cast<std::size_t>(ForeignRole::kO)], hints, out);
  if (const Array* lse = arrays[static_cast<std::size_t>(ForeignRole::kLse)])
    set_lse(*lse, shapes, hints, out);
  if (const Array* bias = arrays[static_cast<std::size_t>(ForeignRole::kBias)])
    set_bias(*bias, hints, out);

  c.provenance.backend = "unknown";
  c.provenance.gate = name(Gate::kFull);
  for (const TensorInfo& t : kTensors)
    if (!c.has(t.id)) c.exempt[static_cast<std::size_t>(t.id)] = "not in the files";
  return out;
}

}  // namespace

std::string_view name(ForeignRole role) {
  constexpr std::array<std::string_view, kNumForeignRoles> kNames = {"q", "k",   "v",
                                                                     "o", "lse", "bias"};
  return kNames[static_cast<std::size_t>(role)];
}

ForeignCase read_foreign(const std::vector<std::string>& paths, const ForeignHints& hints) {
  if (paths.size() == 1 && is_dump(paths.front())) return from_dump(paths.front());
  // Every file once, those that only a role names too.
  std::vector<std::string> names;
  const auto add = [&](const std::string& path) {
    if (std::find(names.begin(), names.end(), path) == names.end()) names.push_back(path);
  };
  for (const std::string& path : paths) add(path);
  for (const std::string& source : hints.source)
    if (const auto path = files::file_of_source(source)) add(*path);
  if (names.empty())
    throw Error(
        "No file was named. Name one that has q, k, v and o, or several: --q q.npy --k k.npy ...");
  files::Contents contents;
  for (const std::string& path : names) files::read_any(path, contents);

  ForeignCase out =
      from_arrays(files::find_roles(contents.arrays, hints), contents.settings, hints);
  Provenance& provenance = out.capture.provenance;
  provenance.kernel = provenance.inputs = fmt::format("{}", fmt::join(names, " "));
  return out;
}

ForeignCase take_foreign(const std::vector<ForeignArray>& given, const ForeignHints& hints) {
  std::vector<Array> arrays(given.size());
  Arrays by_role{};
  for (std::size_t i = 0; i < given.size(); ++i) {
    arrays[i] = files::array_in_memory(given[i]);
    by_role[static_cast<std::size_t>(given[i].role)] = &arrays[i];
  }
  for (const ForeignRole role :
       {ForeignRole::kQ, ForeignRole::kK, ForeignRole::kV, ForeignRole::kO})
    if (by_role[static_cast<std::size_t>(role)] == nullptr)
      throw Error(fmt::format("q, k, v and o are needed, and {} was not given.", name(role)));
  ForeignCase out = from_arrays(by_role, {}, hints);
  out.capture.provenance.kernel = out.capture.provenance.inputs = "arrays in memory";
  return out;
}

Geometry unknown_geometry(const Problem& problem) {
  Geometry geometry;
  geometry.tile = {64, 64};
  geometry.tiles_per_split = num_kv_tiles(problem, geometry);
  return geometry;
}

Arithmetic unknown_arithmetic(const Problem& problem) {
  Arithmetic arithmetic;
  arithmetic.dot_ulp = 2.5;
  arithmetic.probs = problem.dtype;
  arithmetic.partial = DType::kFp32;
  return arithmetic;
}

}  // namespace attn_diag
