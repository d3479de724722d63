#include "tools/attn_diag/cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "attn_diag/harness/check_problem.h"
#include "attn_diag/harness/diagnose.h"
#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/executor.h"
#include "attn_diag/harness/plan.h"
#include "harness/backends/choose_backend.h"
#include "harness/report/text.h"
#include "harness/run/run_plan.h"
#include "tools/attn_diag/crash_page.h"
#include "tools/attn_diag/suggest.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

std::string or_default(const std::string& typed, const char* fallback) {
  return typed.empty() ? fallback : typed;
}

// A flag that only the host executor understands, if one was given; else null.
const char* host_flag(const Flags& f) {
  if (!f.schedule.empty()) return "--schedule";
  if (!f.mma_order.empty()) return "--mma-order";
  if (!f.async_copies.empty()) return "--async-copies";
  return nullptr;
}

// "host", "cuda", or "" for whatever suits the kernel.
std::string parse_backend(const Flags& f) {
  const std::string& typed = f.backend;
  const char* only_host = host_flag(f);
  if (typed == "cuda" && only_host != nullptr)
    throw Error(
        fmt::format("{} is about the host executor: a GPU decides that itself. Leave "
                    "the flag out, or use --backend host.",
                    only_host));
  if (typed == "host" || typed == "cuda") return typed;
  if (typed.empty() || typed == "auto") return only_host != nullptr ? "host" : "";
  throw Error(fmt::format("--backend takes auto, host or cuda, but was given '{}'.{}", typed,
                          did_you_mean(typed, {"auto", "host", "cuda"})));
}

// Each case times each entry of a list.
class Product {
 public:
  explicit Product(RequestedCase first) : x_cases{std::move(first)} {}

  template <class Set>
  void times(std::string_view flag, const std::string& text, const Set& set) {
    const std::vector<std::string> entries = split_list(flag, text);
    std::vector<RequestedCase> out;
    out.reserve(x_cases.size() * entries.size());
    if (static_cast<double>(x_cases.size()) * static_cast<double>(entries.size()) > 1e5)
      throw Error("The lists in the flags make more than 100000 cases.");
    for (const RequestedCase& c : x_cases) {
      for (const std::string& entry : entries) {
        out.push_back(c);
        set(out.back(), entry);
      }
    }
    x_cases = std::move(out);
  }
  // A size of the problem.
  void times(std::string_view flag, const std::string& text, std::int32_t Problem::*size,
             std::int64_t high = kMaxSize) {
    times(flag, text, [&](RequestedCase& c, const std::string& entry) {
      c.problem.*size = static_cast<std::int32_t>(parse_int(flag, entry, 1, high));
    });
  }
  std::vector<RequestedCase>& cases() { return x_cases; }

 private:
  std::vector<RequestedCase> x_cases;
};

// Sizes, dtype and layout come with the file.
void refuse_with_file(const Flags& f) {
  const std::pair<const char*, const std::string*> fixed[] = {
      {"--batch", &f.batch},       {"--heads", &f.heads},
      {"--kv-heads", &f.kv_heads}, {"--seqlen", &f.seqlen},
      {"--seqlen-q", &f.seqlen_q}, {"--seqlen-k", &f.seqlen_k},
      {"--head-dim", &f.head_dim}, {"--head-dim-v", &f.head_dim_v},
      {"--dtype", &f.dtype},       {"--layout", &f.layout},
      {"--seed", &f.seed},         {"--input-scale", &f.input_scale}};
  for (const auto& [flag, value] : fixed)
    if (!value->empty())
      throw Error(
          fmt::format("{} comes with the inputs in {}: leave the flag out.", flag, f.inputs));
}

bool is_file(const std::string& inputs) {
  return inputs.find('/') != std::string::npos || inputs.ends_with(".h5") ||
         inputs.ends_with(".hdf5");
}

void problem_from_file(Product& product, const Flags& f) {
  refuse_with_file(f);
  const Capture dump = read_dump(f.inputs);
  for (RequestedCase& c : product.cases()) {
    c.problem = dump.problem;
    c.inputs = f.inputs;
    c.inputs_from_file = true;
    c.seed = dump.provenance.seed;
    c.scale_given = true;
  }
}

void problem_from_flags(Product& product, const Flags& f) {
  for (RequestedCase& c : product.cases())
    c.open = {f.dtype.empty(), f.layout.empty(), f.head_dim.empty() && f.head_dim_v.empty(),
              f.mask.empty()};
  product.times(
      "--dtype", or_default(f.dtype, "fp16"),
      [](RequestedCase& c, const std::string& entry) { c.problem.dtype = parse_dtype(entry); });
  product.times(
      "--layout", or_default(f.layout, "BHSD"),
      [](RequestedCase& c, const std::string& entry) { c.problem.layout = parse_layout(entry); });
  product.times("--batch", or_default(f.batch, "1"), &Problem::batch);
  product.times("--heads", or_default(f.heads, "2"), &Problem::heads);
  if (f.kv_heads.empty()) {
    for (RequestedCase& c : product.cases()) c.problem.kv_heads = c.problem.heads;
  } else {
    product.times("--kv-heads", f.kv_heads, &Problem::kv_heads);
  }
  product.times("--seqlen", or_default(f.seqlen, "128"), &Problem::seqlen_q);
  for (RequestedCase& c : product.cases()) c.problem.seqlen_k = c.problem.seqlen_q;
  if (!f.seqlen_q.empty()) product.times("--seqlen-q", f.seqlen_q, &Problem::seqlen_q);
  if (!f.seqlen_k.empty()) product.times("--seqlen-k", f.seqlen_k, &Problem::seqlen_k);
  product.times("--head-dim", or_default(f.head_dim, "64"), &Problem::head_dim, 256);
  for (RequestedCase& c : product.cases()) c.problem.head_dim_v = c.problem.head_dim;
  if (!f.head_dim_v.empty()) product.times("--head-dim-v", f.head_dim_v, &Problem::head_dim_v, 256);
  product.times(
      "--inputs", or_default(f.inputs, "randn"), [](RequestedCase& c, const std::string& entry) {
        std::vector<std::string> names;
        for (const InputKindInfo& kind : input_kinds()) names.emplace_back(kind.name);
        if (std::find(names.begin(), names.end(), entry) == names.end())
          throw Error(fmt::format("--inputs takes {} or a dump's FILE.h5, but was given '{}'.{}",
                                  fmt::join(names, ", "), entry, did_you_mean(entry, names)));
        c.inputs = entry;
      });
  product.times("--seed", or_default(f.seed, "0"), [](RequestedCase& c, const std::string& entry) {
    c.seed = parse_seed("--seed", entry);
  });
  product.times("--input-scale", or_default(f.input_scale, "1"),
                [](RequestedCase& c, const std::string& entry) {
                  c.input_scale = parse_real("--input-scale", entry);
                });
}

// Of scattered rows only o and lse of the production kernel are judged: taps record boxes.
void set_sample(RequestedCase& c, const Flags& f) {
  if (f.command != "run")
    throw Error(fmt::format(
        "--query {}: run and compare judge o and lse of rows here and there. {} records stages, of "
        "one box of rows: --query A:B.",
        f.query, f.command));
  if ((!f.stage.empty() && c.run.gate != Gate::kFull) || c.run.isolate)
    throw Error(fmt::format(
        "--query {} judges o and lse of the production kernel: leave out --stage and --isolate, or "
        "give --query A:B, of which stages can be recorded.",
        f.query));
  c.run.gate = Gate::kFull;
  c.run.taps = false;
  c.rows = parse_some_rows(f, c.problem, c.seed);
}

void set_region(RequestedCase& c, const Flags& f) {
  const auto set = [&](std::size_t axis, std::string_view flag, const std::string& text,
                       std::int64_t extent) {
    if (text.empty()) return;
    const Interval i = parse_interval(flag, text, extent);
    c.run.region.origin[axis] = i.begin;
    c.run.region.extent[axis] = i.end - i.begin;
  };
  c.run.region = whole(c.problem);
  if (parse_sample("--query", f.query)) {
    set_sample(c, f);
    return;
  }
  set(0, "--batch-index", f.batch_index, c.problem.batch);
  set(1, "--head", f.head, c.problem.heads);
  set(2, "--query", f.query, c.problem.seqlen_q);
}

RequestedCase common(const Flags& f) {
  RequestedCase c;
  c.backend = parse_backend(f);
  if (!f.threads.empty())
    c.run.threads = static_cast<int>(parse_int("--threads", f.threads, 1, 1024));
  if (!f.schedule.empty()) {
    try {
      c.run.schedule = host::to_string(host::parse_schedule(f.schedule));
    } catch (const std::invalid_argument& e) {
      throw Error(fmt::format("--schedule was given '{}': {}", f.schedule, e.what()));
    }
  }
  if (!f.mma_order.empty()) c.run.mma_order = parse_seed("--mma-order", f.mma_order);
  if (!f.async_copies.empty()) {
    if (f.async_copies != "late" && f.async_copies != "early")
      throw Error(
          fmt::format("--async-copies was given '{}': it is late or early.", f.async_copies));
    c.run.async_copies = f.async_copies;
  }
  if (!f.stage.empty()) {
    c.run.gate = parse_gate(f.stage);
    c.run.taps = c.run.gate != Gate::kFull;
  }
  c.run.isolate = f.isolate;
  if (c.run.isolate && !c.run.taps)
    throw Error("--isolate needs taps, which the production kernel (--stage full) has not.");
  return c;
}

}  // namespace

std::vector<RequestedCase> expand_cases(const Flags& f, bool many) {
  if (f.kernel.empty())
    throw Error(fmt::format("{} needs --kernel; attn-diag list shows which there are.", f.command));
  Product product(common(f));
  product.times("--kernel", f.kernel, [](RequestedCase& c, const std::string& entry) {
    c.kernel = entry;
    if (!c.backend.empty()) return;
    const BackendChoice choice = choose_backend(entry);
    c.backend = choice.backend;
    c.notes = {fmt::format("Backend auto is {} here: {}.", choice.backend, choice.why)};
  });
  if (is_file(f.inputs)) {
    problem_from_file(product, f);
  } else {
    problem_from_flags(product, f);
  }
  if (!f.mask.empty() || !is_file(f.inputs))
    product.times("--mask", or_default(f.mask, "none"),
                  [](RequestedCase& c, const std::string& entry) {
                    c.problem.mask = parse_mask(entry, c.problem.seqlen_q, c.problem.seqlen_k);
                  });
  if (!f.tile.empty())
    product.times("--tile", f.tile, [](RequestedCase& c, const std::string& entry) {
      c.run.tile = parse_tile(entry);
    });
  if (!f.num_splits.empty())
    product.times("--num-splits", f.num_splits, [](RequestedCase& c, const std::string& entry) {
      c.run.num_splits = static_cast<int>(parse_int("--num-splits", entry, 1, 65535));
    });
  for (RequestedCase& c : product.cases()) {
    if (!f.softmax_scale.empty()) {
      c.problem.softmax_scale = static_cast<float>(parse_real("--softmax-scale", f.softmax_scale));
      c.scale_given = true;
    } else if (!c.scale_given) {
      c.problem.softmax_scale = default_softmax_scale(c.problem.head_dim);
    }
    check_problem(c.problem);
    set_region(c, f);
  }
  if (!many && product.cases().size() > 1)
    throw Error(
        fmt::format("{} takes one case, but the lists in the flags make {}. attn-diag run "
                    "takes lists.",
                    f.command, product.cases().size()));
  return std::move(product.cases());
}

SomeRows parse_some_rows(const Flags& f, const Problem& p, std::uint64_t seed) {
  const auto range = [](std::string_view flag, const std::string& text, std::int32_t extent) {
    return text.empty() ? Interval{0, extent} : parse_interval(flag, text, extent);
  };
  const Interval batch = range("--batch-index", f.batch_index, p.batch);
  const Interval head = range("--head", f.head, p.heads);
  SomeRows rows{static_cast<std::int32_t>(batch.begin),
                static_cast<std::int32_t>(batch.end),
                static_cast<std::int32_t>(head.begin),
                static_cast<std::int32_t>(head.end),
                {},
                false};
  if (const auto sample = parse_sample("--query", f.query)) {
    rows.queries = sampled_queries(p.seqlen_q, *sample, seed);
    rows.sampled = true;
  } else {
    const Interval query = range("--query", f.query, p.seqlen_q);
    for (std::int64_t q = query.begin; q < query.end; ++q)
      rows.queries.push_back(static_cast<std::int32_t>(q));
  }
  return rows;
}

Tolerance parse_tolerance(const Flags& f) {
  Tolerance t;
  t.use_bound = f.atol.empty() && f.rtol.empty();
  if (!f.atol.empty()) t.atol = parse_real("--atol", f.atol, 0);
  if (!f.rtol.empty()) t.rtol = parse_real("--rtol", f.rtol, 0);
  return t;
}

void refuse_case_flags(const Flags& f) {
  const std::pair<const char*, const std::string*> of_cases[] = {
      {"--batch", &f.batch},
      {"--heads", &f.heads},
      {"--kv-heads", &f.kv_heads},
      {"--seqlen", &f.seqlen},
      {"--seqlen-q", &f.seqlen_q},
      {"--seqlen-k", &f.seqlen_k},
      {"--head-dim", &f.head_dim},
      {"--head-dim-v", &f.head_dim_v},
      {"--inputs", &f.inputs},
      {"--seed", &f.seed},
      {"--input-scale", &f.input_scale},
      {"--stage", &f.stage},
      {"--schedule", &f.schedule},
      {"--backend", &f.backend},
      {"--mma-order", &f.mma_order},
      {"--async-copies", &f.async_copies}};
  for (const auto& [flag, value] : of_cases)
    if (!value->empty())
      throw Error(
          fmt::format("{} is about running a kernel, but a file was given: leave it out.", flag));
}

std::vector<Geometry> cuts_of(const Flags& flags, ForeignCase& file) {
  return cuts_to_try(
      file, flags.tile.empty() ? std::nullopt : std::optional(parse_tile(flags.tile)),
      flags.num_splits.empty()
          ? 0
          : static_cast<std::int32_t>(parse_int("--num-splits", flags.num_splits, 1, 65535)));
}

std::vector<std::string> reproduce(const std::string& command, const RequestedCase& c,
                                   const Flags& f) {
  const Problem& p = c.problem;
  // The production kernel, on backend host.
  const bool repairs = command == "repair", checks = command == "check" || repairs;
  std::vector<std::string> words = {command, "--kernel", c.kernel};
  if (!checks) words.insert(words.end(), {"--backend", c.backend});
  const auto add = [&](const char* flag, const std::string& value) {
    words.emplace_back(flag);
    words.push_back(value);
  };
  const auto add_size = [&](const char* flag, std::int64_t value) {
    add(flag, std::to_string(value));
  };
  if (c.inputs_from_file) {
    add("--inputs", c.inputs);
  } else {
    add_size("--batch", p.batch);
    add_size("--heads", p.heads);
    add_size("--kv-heads", p.kv_heads);
    if (p.seqlen_q == p.seqlen_k) {
      add_size("--seqlen", p.seqlen_q);
    } else {
      add_size("--seqlen-q", p.seqlen_q);
      add_size("--seqlen-k", p.seqlen_k);
    }
    add_size("--head-dim", p.head_dim);
    if (p.head_dim_v != p.head_dim) add_size("--head-dim-v", p.head_dim_v);
    add("--dtype", std::string(name(p.dtype)));
    add("--layout", std::string(name(p.layout)));
    add("--inputs", c.inputs);
    add("--seed", std::to_string(c.seed));
    if (c.input_scale != 1) add("--input-scale", fmt::format("{}", c.input_scale));
  }
  add("--mask", report::mask_text(p));
  if (c.scale_given) add("--softmax-scale", fmt::format("{}", p.softmax_scale));
  if (c.run.tile.block_m > 0)
    add("--tile", fmt::format("{}x{}", c.run.tile.block_m, c.run.tile.block_n));
  if (c.run.num_splits > 0) add_size("--num-splits", c.run.num_splits);
  if (c.run.schedule != "forward") add("--schedule", c.run.schedule);
  if (c.run.mma_order != 0) add("--mma-order", std::to_string(c.run.mma_order));
  // The line says everything, so that no file of defaults may change it.
  if (f.no_config) words.emplace_back("--no-config");
  if (repairs && !f.atol.empty()) add("--atol", f.atol);
  if (repairs && !f.rtol.empty()) add("--rtol", f.rtol);
  if (checks) return words;
  if (c.run.async_copies != "late") add("--async-copies", c.run.async_copies);
  if (c.run.gate != Gate::kReduce) add("--stage", std::string(name(c.run.gate)));
  if (c.run.isolate) words.emplace_back("--isolate");
  if (!f.batch_index.empty()) add("--batch-index", f.batch_index);
  if (!f.head.empty()) add("--head", f.head);
  if (!f.query.empty()) add("--query", f.query);
  if (!f.atol.empty()) add("--atol", f.atol);
  if (!f.rtol.empty()) add("--rtol", f.rtol);
  return words;
}

Kernel load_kernel(const RequestedCase& c) {
  return Kernel::load(c.kernel, c.backend, host::is_lockstep(c.run.schedule));
}

Kernel load_instrumented(const std::string& spec) {
  const bool named = spec.ends_with(".lockstep.so") || spec.find(".lockstep.so:") != spec.npos;
  return Kernel::load(spec, "host", !named);
}

std::string case_text(const Kernel& kernel, const RequestedCase& c) {
  Problem taken = c.problem;
  if (const Support* support = kernel.info().support) choose_open(*support, c.open, taken);
  return c.kernel + " " + report::problem_text(taken);
}

Geometry plan(const Kernel& kernel, RequestedCase& c) {
  if (const Support* support = kernel.info().support) {
    const std::vector<std::string> chosen = choose_open(*support, c.open, c.problem);
    if (!chosen.empty()) {
      if (!c.scale_given) c.problem.softmax_scale = default_softmax_scale(c.problem.head_dim);
      c.notes.push_back(fmt::format("{} does not take the defaults: chosen was {}.", c.kernel,
                                    fmt::join(chosen, " ")));
    }
  }
  const Geometry geometry = plan_geometry(kernel, c.problem, c.run);
  c.run.tile = geometry.tile;
  if (kernel.info().takes_num_splits) c.run.num_splits = geometry.num_splits;
  Flags flags;
  flags.no_config = true;
  note_check(reproduce("check", c, flags));
  return geometry;
}

InputData inputs_of(const RequestedCase& c, const Kernel& kernel, const Geometry& geometry) {
  check_memory(kernel, c.problem, geometry, c.run);
  if (!c.inputs_from_file) return make_inputs(c.problem, c.inputs, c.seed, c.input_scale);
  Capture dump = read_dump(c.inputs);
  InputData inputs;
  inputs.q = std::move(dump.q);
  inputs.k = std::move(dump.k);
  inputs.v = std::move(dump.v);
  inputs.kind = c.inputs;
  inputs.seed = c.seed;
  inputs.scale = dump.provenance.input_scale;
  for (const auto* data : {&inputs.q, &inputs.k, &inputs.v})
    inputs.has_nonfinite = inputs.has_nonfinite || has_nonfinite(*data, c.problem.dtype);
  return inputs;
}

}  // namespace attn_diag::cli
