#include "harness/report/sanity_report.h"

#include <fmt/format.h>

#include <string_view>

namespace attn_diag::report {
namespace {

constexpr const char* kEarlyCopy = "an asynchronous copy is used before it has landed";

// What the checker did not find, it may not have seen; what no kernel loads can still come out, where nothing stores it.
std::string kind_of(GivenMemory memory, const std::optional<Sanity::Checked>& checked) {
  const bool asked = checked.has_value(), found = asked && checked->unwritten;
  switch (memory) {
    case GivenMemory::kWorkspace:
    case GivenMemory::kAllocated:
    case GivenMemory::kOutput:
      if (asked && !found)
        return checked->other.empty() ? "cells of o or lse that nothing stores, as attn-diag check "
                                        "finds no uninitialised read"
                                      : "attn-diag check finds this: " + checked->other;
      if (memory == GivenMemory::kOutput)
        return found ? "it is read, or added to, before it is written"
                     : "it is never written, or read, or added to, before that";
      return found || memory == GivenMemory::kWorkspace
                 ? "an uninitialised read"
                 : "an uninitialised read, or cells of o or lse that nothing stores";
    case GivenMemory::kShared:
      return asked && checked->early_copy
                 ? kEarlyCopy
                 : "an uninitialised read, or one before another thread, or an asynchronous copy, "
                   "has written";
    default:
      return "a read outside the buffer";
  }
}

std::string order_cause(const std::optional<Sanity::Checked>& checked) {
  const std::string any = "a race, or a read of what nobody wrote";
  if (!checked) return any;
  if (checked->race) return "a race";
  if (checked->early_copy) return kEarlyCopy;
  if (checked->unwritten) return "a read of what nobody wrote";
  return checked->other.empty() ? any + ", though attn-diag check finds neither"
                                : "attn-diag check finds this: " + checked->other;
}

std::string memories(const Sanity& sanity) {
  std::vector<std::string> names;
  for (const Sanity::Culprit& c : sanity.culprits) names.emplace_back(name(c.memory));
  return join(names, ", ");
}

const char* json_name(SanityFinding finding) {
  switch (finding) {
    case SanityFinding::kSteady:
      return "steady";
    case SanityFinding::kReadsUnwritten:
      return "reads_unwritten";
    case SanityFinding::kDependsOnOrder:
      return "depends_on_order";
    case SanityFinding::kBlocksRace:
      return "blocks_race";
    case SanityFinding::kMoves:
      return "moves";
    case SanityFinding::kNotChecked:
      break;
  }
  return "not_checked";
}

}  // namespace

std::string sanity_headline(const Sanity& sanity) {
  if (sanity.finding == SanityFinding::kBlocksRace)
    return "blocks race for the same memory, and the result is up to which of them comes first";
  if (sanity.unsound() && sanity.by_copies)
    return "the result depends on when asynchronous copies land: one is read too early, or was "
           "issued too early";
  if (sanity.unsound() && sanity.finding == SanityFinding::kDependsOnOrder)
    return "the result depends on the order in which threads run: " + order_cause(sanity.checked);
  if (sanity.unsound() && sanity.finding == SanityFinding::kMoves)
    return "the result moves from run to run: a race, or a read of memory that is not the kernel's";
  if (sanity.within_bounds)
    return "the bits of the result depend on the order in which threads or blocks arrive, within "
           "rounding";
  if (sanity.finding != SanityFinding::kReadsUnwritten) return "";
  return fmt::format("the result depends on what was in {} before the run: {}", memories(sanity),
                     kind_of(sanity.culprits.front().memory, sanity.checked));
}

std::string standing_text(const Sanity& sanity, const std::string& where) {
  if (!sanity.unsound() || !sanity.calm) return "";
  const std::string& calm = sanity.calm->text;
  if (!where.empty()) return fmt::format("; {}, where it holds still, {}", calm, where);
  switch (sanity.on_gpu) {
    case OnGpu::kRight:
      return fmt::format("; right {}, and so most likely on a GPU today{}", calm,
                         sanity.finding == SanityFinding::kReadsUnwritten
                             ? ", but not in memory that was used before"
                             : "");
    case OnGpu::kWrong:
      return sanity.calm->right ? fmt::format("; right {}, but most likely wrong on a GPU", calm)
                                : fmt::format("; wrong {}, too, and so most likely on a GPU", calm);
    case OnGpu::kEither:
      return fmt::format("; {} {}, but not if warps come in another order: a GPU may do either",
                         sanity.calm->right ? "right" : "wrong", calm);
    case OnGpu::kUnknown:
      break;
  }
  return "";
}

std::string sanity_text(const Sanity& sanity, const std::string& check, const Style& style) {
  if (sanity.finding == SanityFinding::kNotChecked) return "";
  std::string s = "  " + wrap(sanity.detail, style.width - 2, 2) + '\n';
  if (!sanity.moved()) return s;
  if (sanity.within_bounds)
    s += "  " +
         wrap("Sums by atomics or under a lock do so, and races whose effect is below rounding.",
              style.width - 2, 2) +
         '\n';
  if (!check.empty())
    s += (sanity.within_bounds ? "  Is it a race? " : "  Find the lines: ") + check + '\n';
  return s;
}

Json to_json(const Sanity& sanity, const std::string& check) {
  Json j;
  j["finding"] = json_name(sanity.finding);
  j["runs"] = sanity.runs;
  j["within_bounds"] = sanity.within_bounds;
  j["seconds"] = sanity.seconds;
  j["latent"] = sanity.latent();
  j["on_gpu"] = !sanity.unsound()                 ? Json(nullptr)
                : sanity.on_gpu == OnGpu::kRight  ? Json("right")
                : sanity.on_gpu == OnGpu::kWrong  ? Json("wrong")
                : sanity.on_gpu == OnGpu::kEither ? Json("either")
                                                  : Json("unknown");
  j["calm"] = nullptr;
  if (sanity.calm) {
    Json calm;
    calm["how"] = sanity.calm->text;
    calm["schedule"] = sanity.calm->schedule;
    calm["right"] = sanity.calm->right;
    j["calm"] = calm;
  }
  j["headline"] =
      sanity.moved() ? Json(sanity_headline(sanity) + standing_text(sanity)) : Json(nullptr);
  j["memories"] = Json::array();
  for (const Sanity::Culprit& c : sanity.culprits) {
    Json memory;
    memory["memory"] = name(c.memory);
    memory["filled_with"] = fmt::format("0x{:02x}", c.byte);
    memory["differing"] = c.differing;
    if (c.first) {
      memory["tensor"] = name(c.first->tensor);
      memory["index"] = index_text(c.first->tensor, c.first->index);
      memory["before"] = json_number(c.first->first);
      memory["after"] = json_number(c.first->second);
    }
    if (!c.error.empty()) memory["error"] = c.error;
    j["memories"].push_back(memory);
  }
  j["detail"] = sanity.detail;
  j["find_the_lines"] = sanity.moved() && !check.empty() ? Json(check) : Json(nullptr);
  return j;
}

}  // namespace attn_diag::report
