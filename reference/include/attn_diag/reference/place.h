// Where a kernel has a bug, and is right elsewhere: in a branch of its code for some tiles or some rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag::reference {

// Some of the KV tiles that the loop of a query tile visits (in its split, where there are splits). A loop visits
// the tiles in which the mask shows a key to some query of the query tile; OfAll: all tiles, as some kernels do.
enum class TilePlace : std::uint8_t {
  kAll,
  kFirst,
  kNotFirst,
  kLast,
  kNotLast,
  kLastOfAll,
  kNotLastOfAll,
  kTail,  // the last tile of the sequence, where it is not full
  kOdd,   // the first one is number 0
  kEven,
  kCut,    // in which the mask hides a key from some query of the query tile
  kWhole,  // in which it hides none
};

enum class RowAxis : std::uint8_t { kNone, kBatch, kHead, kQueryTile, kRowOfTile };

// The rows whose index on an axis, modulo `of` if that is not 0, is in [begin, end).
struct RowPlace {
  RowAxis axis = RowAxis::kNone;  // kNone: all rows
  std::int32_t of = 0, begin = 0, end = 0;
  bool operator==(const RowPlace&) const = default;
};

struct Place {
  TilePlace tiles = TilePlace::kAll;
  RowPlace rows;
  bool operator==(const Place&) const = default;
};

// `tile` is a KV tile of the problem.
bool holds(TilePlace place, const Problem& problem, const Geometry& geometry, std::int32_t query,
           std::int32_t tile);
bool holds(const RowPlace& place, const Geometry& geometry, std::int32_t batch, std::int32_t head,
           std::int32_t query);

struct NamedPlace {
  Place place;
  std::string name;  // "the last query tile"
};
// Those worth trying on a problem: none that holds everything or nothing of it.
std::vector<NamedPlace> tile_places(const Problem& problem, const Geometry& geometry);
std::vector<NamedPlace> row_places(const Problem& problem, const Geometry& geometry);

}  // namespace attn_diag::reference
