#include "harness/report/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "attn_diag/harness/error.h"
#include "harness/report/table.h"

namespace attn_diag::report {
namespace {

constexpr const char* kPytorchSchema = "attn-diag-pytorch/1";

bool same(const Problem& a, const Problem& b) { return to_json(a) == to_json(b); }

// True if everything that the file says of its problem holds for ours.
bool is_of(const PytorchTime& time, const Problem& problem) {
  const Json ours = to_json(problem);
  for (const auto& [key, value] : time.problem.items())
    if (!ours.contains(key) || ours[key] != value) return false;
  return true;
}

std::string microseconds(double seconds) {
  const double us = seconds * 1e6;
  return us < 100 ? fmt::format("{:.2f}", us) : fmt::format("{:.1f}", us);
}

std::string times(double x) {
  return x < 9.95 ? fmt::format("{:.2f}x", x) : fmt::format("{:.0f}x", x);
}

std::string times(const std::optional<double>& x) { return x ? times(*x) : ""; }

std::string verdict_name(BenchVerdict verdict) {
  switch (verdict) {
    case BenchVerdict::kTimed:
      return "timed";
    case BenchVerdict::kDiverges:
      return "diverges";
    case BenchVerdict::kUnsupported:
      return "unsupported";
    case BenchVerdict::kFailed:
      return "failed";
  }
  return "?";
}

std::string compared_text(const BenchRow& row) {
  return row.rows_compared == row.rows
             ? "all"
             : fmt::format("{} of {}", count(row.rows_compared), count(row.rows));
}

// What the floors are made of, for every element type among the rows.
std::string peaks_text(const BenchReport& report) {
  const DevicePeaks& peaks = report.peaks;
  std::string s = fmt::format(
      "{}, driver {}, {} SMs, up to {:.0f} MHz, {} L2. Floors: bytes over {:.0f} GB/s (device to "
      "device copy, measured here, bytes read plus written)",
      peaks.device, peaks.driver, peaks.sm_count, peaks.clock_hz / 1e6,
      bytes(static_cast<double>(peaks.l2_bytes)), peaks.copy_bytes_per_second / 1e9);
  std::set<DType> dtypes;
  for (const BenchRow& row : report.rows) dtypes.insert(row.problem.dtype);
  for (const DType dtype : dtypes) {
    const std::string what =
        fmt::format("{} on sm_{}{}", name(dtype), peaks.compute_major, peaks.compute_minor);
    if (const auto rate = flops_per_sm_per_clock(peaks, dtype))
      s += fmt::format(
          "; flops over {:.0f} TFLOP/s (nominal: SMs x highest clock x {:.0f} a clock for {})",
          *rate * peaks.sm_count * peaks.clock_hz / 1e12, *rate, what);
    else
      s += fmt::format("; no floor of flops: the peak for {} is not known to this program", what);
  }
  return s + '.';
}

std::string rows_text(const BenchReport& report, std::size_t begin, std::size_t end,
                      const Style& style) {
  const Problem& problem = report.rows[begin].problem;
  const Floors floors = floors_of(problem, report.peaks);
  std::string s = fmt::format("{}: floors {} us (bytes), ", problem_text(problem),
                              microseconds(floors.bytes_seconds));
  s += floors.flops_seconds ? microseconds(*floors.flops_seconds) + " us (flops)\n"
                            : std::string("unknown (flops)\n");
  Table table({"kernel", ">median us", ">min", ">quartiles", ">TFLOP/s", ">GB/s", ">of floor",
               ">of fastest", ">fa1 takes", ">of PyTorch", ">of its fastest", "rows compared"});
  std::vector<std::string> others;
  for (std::size_t i = begin; i < end; ++i) {
    const BenchRow& row = report.rows[i];
    if (row.verdict != BenchVerdict::kTimed) {
      table.add({row.kernel, paint(style, Colour::kRed, verdict_name(row.verdict))});
      others.push_back(fmt::format("{}: {}", row.kernel, row.why));
      continue;
    }
    const BenchRatios r = bench_ratios(report, row);
    const Timing& t = row.timing;
    table.add({row.kernel, microseconds(t.median), microseconds(t.min),
               fmt::format("{}-{}", microseconds(t.lower_quartile), microseconds(t.upper_quartile)),
               fmt::format("{:.1f}", r.tflops), fmt::format("{:.0f}", r.gigabytes),
               times(r.to_floor), times(r.to_fastest),
               row.kernel == "fa1" ? "" : times(r.faster_than_fa1), times(r.to_pytorch),
               r.to_fastest_pytorch
                   ? fmt::format("{} ({})", times(r.to_fastest_pytorch), r.fastest_pytorch)
                   : "",
               compared_text(row)});
    if (!t.graph) others.push_back(row.kernel + ": launched one by one, not from a CUDA graph.");
  }
  s += table.text(style);
  for (const std::string& other : others) s += "  " + wrap(other, style.width - 2, 4) + '\n';
  return s;
}

std::string headline(const BenchReport& report, const Style& style) {
  std::int64_t timed = 0, diverging = 0, failed = 0, unsupported = 0;
  for (const BenchRow& row : report.rows) {
    timed += row.verdict == BenchVerdict::kTimed;
    diverging += row.verdict == BenchVerdict::kDiverges;
    failed += row.verdict == BenchVerdict::kFailed;
    unsupported += row.verdict == BenchVerdict::kUnsupported;
  }
  std::string s = fmt::format("{} timed", plural(timed, "case"));
  if (diverging > 0) s += fmt::format(", {} not timed: the output diverges", diverging);
  if (failed > 0) s += fmt::format(", {} failed", failed);
  if (unsupported > 0) s += fmt::format(", {} unsupported", unsupported);
  return paint(style, diverging + failed > 0 ? Colour::kRed : Colour::kBold, s) + '\n';
}

Json optional_json(const std::optional<double>& x) { return x ? json_number(*x) : Json(nullptr); }

Json row_json(const BenchReport& report, const BenchRow& row) {
  Json j;
  j["kernel"] = row.kernel;
  j["verdict"] = verdict_name(row.verdict);
  j["why"] = row.why.empty() ? Json(nullptr) : Json(row.why);
  j["problem"] = to_json(row.problem);
  j["geometry"] = row.verdict == BenchVerdict::kUnsupported ? Json(nullptr) : to_json(row.geometry);
  j["rows_compared"] = row.rows_compared;
  j["rows"] = row.rows;
  j["max_err_over_bound"] = json_number(row.max_err_over_bound);
  if (row.verdict != BenchVerdict::kTimed) return j;
  const Timing& t = row.timing;
  j["seconds"] = {{"median", t.median},
                  {"min", t.min},
                  {"lower_quartile", t.lower_quartile},
                  {"upper_quartile", t.upper_quartile}};
  j["samples"] = t.samples;
  j["launches_per_sample"] = t.launches;
  j["input_sets"] = t.input_sets;
  j["graph"] = t.graph;
  const Floors floors = floors_of(row.problem, report.peaks);
  j["floors"] = {{"bytes_seconds", floors.bytes_seconds},
                 {"flops_seconds", optional_json(floors.flops_seconds)}};
  const BenchRatios r = bench_ratios(report, row);
  j["tflops"] = r.tflops;
  j["gigabytes_per_second"] = r.gigabytes;
  j["of_floor"] = r.to_floor;
  j["of_fastest"] = r.to_fastest;
  j["faster_than_fa1"] = optional_json(r.faster_than_fa1);
  j["of_pytorch"] = optional_json(r.to_pytorch);
  j["of_fastest_pytorch"] = optional_json(r.to_fastest_pytorch);
  j["fastest_pytorch"] = r.fastest_pytorch.empty() ? Json(nullptr) : Json(r.fastest_pytorch);
  return j;
}

}  // namespace

PytorchTimes read_pytorch_times(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(fmt::format("--against {}: the file cannot be read.", path));
  const Json j = Json::parse(file, nullptr, false);
  if (j.is_discarded() || !j.is_object() || !j.contains("schema") || j["schema"] != kPytorchSchema)
    throw Error(
        fmt::format("--against {}: expected JSON with schema {}, as "
                    "tools/compare_with_pytorch.py writes it.",
                    path, kPytorchSchema));
  try {
    PytorchTimes result;
    result.path = path;
    result.device = j.at("device").get<std::string>();
    result.version = j.at("torch").get<std::string>();
    for (const Json& row : j.at("rows")) {
      if (row.at("seconds").is_null()) continue;  // this backend does not take the problem
      result.times.push_back({row.at("backend").get<std::string>(), row.at("problem"),
                              row.at("seconds").at("median").get<double>()});
    }
    return result;
  } catch (const Json::exception& e) {
    throw Error(fmt::format("--against {}: not as tools/compare_with_pytorch.py writes it: {}",
                            path, e.what()));
  }
}

BenchRatios bench_ratios(const BenchReport& report, const BenchRow& row) {
  const double seconds = row.timing.median;
  const Work work = work_of(row.problem);
  BenchRatios r;
  r.tflops = work.flops / seconds / 1e12;
  r.gigabytes = work.bytes / seconds / 1e9;
  r.to_floor = seconds / floors_of(row.problem, report.peaks).larger();
  double fastest = seconds;
  for (const BenchRow& other : report.rows) {
    if (other.verdict != BenchVerdict::kTimed || !same(other.problem, row.problem)) continue;
    fastest = std::min(fastest, other.timing.median);
    if (other.kernel == "fa1") r.faster_than_fa1 = other.timing.median / seconds;
  }
  r.to_fastest = seconds / fastest;
  if (!report.pytorch) return r;
  for (const PytorchTime& time : report.pytorch->times) {
    if (!is_of(time, row.problem)) continue;
    if (time.backend == "default") r.to_pytorch = seconds / time.median;
    if (!r.to_fastest_pytorch || seconds / time.median > *r.to_fastest_pytorch) {
      r.to_fastest_pytorch = seconds / time.median;
      r.fastest_pytorch = time.backend;
    }
  }
  return r;
}

std::string bench_text(const BenchReport& report, const Style& style, bool verdict_only) {
  std::string s = headline(report, style);
  if (verdict_only) return s;
  for (std::size_t begin = 0; begin < report.rows.size();) {
    std::size_t end = begin + 1;
    while (end < report.rows.size() && same(report.rows[end].problem, report.rows[begin].problem))
      ++end;
    s += '\n' + rows_text(report, begin, end, style);
    begin = end;
  }
  if (report.rows.empty()) return s;
  s += "\n  " + wrap(peaks_text(report), style.width - 2, 4) + '\n';
  s += "  " +
       wrap(
           "Times are of one call within a CUDA graph of many, on inputs that are not in the L2 "
           "cache; median, least and quartiles of the samples.",
           style.width - 2, 4) +
       '\n';
  if (report.pytorch)
    s += "  " +
         wrap(fmt::format("PyTorch {} on {}: {}.", report.pytorch->version, report.pytorch->device,
                          report.pytorch->path),
              style.width - 2, 4) +
         '\n';
  return s;
}

Json bench_json(const BenchReport& report, int exit_code, const CommandContext& context) {
  Json j = json_head(context);
  j["exit_code"] = exit_code;
  j["reproduce"] = context.reproduce;
  const DevicePeaks& p = report.peaks;
  j["device"] = {{"name", p.device},
                 {"driver", p.driver},
                 {"compute_capability", fmt::format("{}.{}", p.compute_major, p.compute_minor)},
                 {"sm_count", p.sm_count},
                 {"clock_hz", p.clock_hz},
                 {"l2_bytes", p.l2_bytes},
                 {"copy_bytes_per_second", p.copy_bytes_per_second}};
  j["pytorch"] = nullptr;
  if (report.pytorch)
    j["pytorch"] = {{"file", report.pytorch->path},
                    {"device", report.pytorch->device},
                    {"version", report.pytorch->version}};
  j["cases"] = Json::array();
  for (const BenchRow& row : report.rows) j["cases"].push_back(row_json(report, row));
  return j;
}

}  // namespace attn_diag::report
