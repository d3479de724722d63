#include "harness/diagnose/places.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "harness/base/parallel_for.h"

namespace attn_diag::matching {
namespace {

// The rows of the sample that a candidate accounts for.
std::vector<std::uint8_t> accounted_for(const Search& search, const Candidate& candidate) {
  const Rows& sample = search.sample();
  reference::Prediction out;
  reference::predict(search.cuts()[candidate.cut], sample.row, candidate.variant.deviation,
                     search.evidence().mask(), out);
  std::vector<std::uint8_t> rows(sample.size());
  for (std::size_t at = 0; at < sample.size(); ++at)
    rows[at] = judge_row(search.evidence(), sample, at, out, 0).worst <= kNearMiss ? 1 : 0;
  return rows;
}

Candidate placed(const Candidate& candidate, reference::Variant variant) {
  Candidate in_place;
  in_place.variant = std::move(variant);
  in_place.cut = candidate.cut;
  in_place.generality = candidate.generality + static_cast<int>(Generality::kNamed);
  return in_place;
}

void add_row_places(const Search& search, const std::vector<Candidate>& singles,
                    std::vector<Candidate>& found) {
  const Rows& sample = search.sample();
  for (const Candidate& single : singles) {
    if (single.explained.empty() || single.tally.wrong_within < single.tally.wrong_rows) continue;
    const reference::PredictionInputs& c = search.cuts()[single.cut];
    const std::vector<std::uint8_t> accounted = accounted_for(search, single);
    for (const reference::NamedPlace& place : reference::row_places(c.problem(), c.geometry())) {
      bool fits = true;
      for (std::size_t at = 0; at < sample.size() && fits; ++at) {
        const reference::RowIndex& row = sample.row[at];
        const bool inside = holds(place.place.rows, c.geometry(), row.batch, row.head, row.query);
        fits = inside ? accounted[at] != 0 : sample.wrong[at] == 0;
      }
      if (!fits) continue;
      if (std::optional<reference::Variant> variant = in_place(single.variant, place))
        found.push_back(placed(single, std::move(*variant)));
    }
  }
}

void add_tile_places(const Search& search,
                     const std::vector<const reference::Hypothesis*>& hypotheses,
                     std::vector<Candidate>& found) {
  const reference::PredictionInputs& c = search.cuts().front();
  const std::vector<reference::NamedPlace> places =
      reference::tile_places(c.problem(), c.geometry());
  std::vector<Candidate> all;
  const auto add = [&](const reference::Variant& variant, Generality generality) {
    Candidate everywhere;
    everywhere.generality = static_cast<int>(generality);
    for (const reference::NamedPlace& place : places)
      if (std::optional<reference::Variant> in = in_place(variant, place))
        all.push_back(placed(everywhere, std::move(*in)));
  };
  for (const reference::Hypothesis* hypothesis : hypotheses)
    for (const reference::Variant& variant : hypothesis->variants(c)) {
      if (!variant.in_pairs) continue;
      add(variant, Generality::kFixed);
      if (!variant.free) continue;
      for (const reference::ParameterValue& value : variant.free->named)
        add(variant.at(value.value, value.named), Generality::kNamed);
    }
  std::vector<std::uint8_t> fits(all.size());
  parallel_for(static_cast<std::int64_t>(all.size()), search.threads(), [&](std::int64_t i) {
    const reference::Variant& variant = all[static_cast<std::size_t>(i)].variant;
    fits[static_cast<std::size_t>(i)] = variant.free || search.fits_sample(variant.deviation);
  });
  for (std::size_t i = 0; i < all.size(); ++i)
    if (fits[i] != 0) found.push_back(std::move(all[i]));
}

}  // namespace

std::vector<Candidate> find_in_places(const Search& search,
                                      const std::vector<const reference::Hypothesis*>& hypotheses,
                                      const std::vector<Candidate>& singles) {
  std::vector<Candidate> found;
  add_row_places(search, singles, found);
  add_tile_places(search, hypotheses, found);
  for (std::size_t i = 0; i < found.size(); ++i) found[i].order = static_cast<std::int64_t>(i);
  search.keep_inside(found);
  return found;
}

}  // namespace attn_diag::matching
