// Bugs on some tiles or in some rows alone.
#include "attn_diag/reference/place.h"

#include <limits>
#include <set>
#include <string>

#include "reference/counterfactual/testing/formula.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using testing::check_output;
using testing::exps;
using testing::Formula;
using testing::largest;
using testing::make_case;
using testing::total;
using testing::variant_of;
using testing::Vec;

constexpr double kInf = std::numeric_limits<double>::infinity();
const Mask kCausal = {MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};

NamedPlace place_named(const std::vector<NamedPlace>& places, const std::string& name) {
  for (const NamedPlace& place : places)
    if (place.name == name) return place;
  FAIL("no place " << name);
  return {};
}

// The KV tiles of a query that a place holds.
std::set<int> tiles_of(TilePlace place, const testing::Case& c, int query) {
  std::set<int> tiles;
  for (int tile = 0; tile * c.geometry.tile.block_n < c.problem.seqlen_k; ++tile)
    if (holds(place, c.problem, c.geometry, query, tile)) tiles.insert(tile);
  return tiles;
}

TEST_CASE("places of tiles are those of the loop of a query tile") {
  // Queries 16 to 31 see keys up to 31: tiles 0 to 3 of 8 keys.
  const testing::Case c = make_case({.block_n = 8, .mask = kCausal});
  const int query = 20;
  CHECK(tiles_of(TilePlace::kFirst, c, query) == std::set<int>{0});
  CHECK(tiles_of(TilePlace::kNotFirst, c, query) == std::set<int>{1, 2, 3});
  CHECK(tiles_of(TilePlace::kLast, c, query) == std::set<int>{3});
  CHECK(tiles_of(TilePlace::kNotLast, c, query) == std::set<int>{0, 1, 2});
  CHECK(tiles_of(TilePlace::kLastOfAll, c, query) == std::set<int>{4});
  CHECK(tiles_of(TilePlace::kNotLastOfAll, c, query) == std::set<int>{0, 1, 2, 3});
  CHECK(tiles_of(TilePlace::kOdd, c, query) == std::set<int>{1, 3});
  CHECK(tiles_of(TilePlace::kEven, c, query) == std::set<int>{0, 2});
  // Query 16 does not see all of tile 2, which query 31 does.
  CHECK(tiles_of(TilePlace::kCut, c, query) == std::set<int>{2, 3});
  CHECK(tiles_of(TilePlace::kWhole, c, query) == std::set<int>{0, 1});
  CHECK(tiles_of(TilePlace::kAll, c, query) == std::set<int>{0, 1, 2, 3, 4});
}

TEST_CASE("places of tiles count anew in every split, and a tail is one tile") {
  const testing::Case splits = make_case({.block_n = 8, .splits = 2});
  CHECK(tiles_of(TilePlace::kFirst, splits, 0) == std::set<int>{0, 3});
  CHECK(tiles_of(TilePlace::kLast, splits, 0) == std::set<int>{2, 4});
  CHECK(tiles_of(TilePlace::kOdd, splits, 0) == std::set<int>{1, 4});
  CHECK(tiles_of(TilePlace::kTail, splits, 0).empty());
  const testing::Case tail = make_case({.seqlen_k = 37, .block_n = 8});
  CHECK(tiles_of(TilePlace::kTail, tail, 0) == std::set<int>{4});
}

TEST_CASE(
    "a place of rows holds those of its indices, and all that are tried hold some and not all") {
  const testing::Case c = make_case({});
  CHECK(holds({RowAxis::kHead, 0, 1, 2}, c.geometry, 0, 1, 0));
  CHECK_FALSE(holds({RowAxis::kHead, 0, 1, 2}, c.geometry, 1, 2, 1));
  CHECK(holds({RowAxis::kQueryTile, 0, 2, 3}, c.geometry, 0, 0, 32));
  CHECK_FALSE(holds({RowAxis::kQueryTile, 0, 2, 3}, c.geometry, 0, 0, 31));
  CHECK(holds({RowAxis::kRowOfTile, 16, 8, 16}, c.geometry, 0, 0, 24));
  CHECK_FALSE(holds({RowAxis::kRowOfTile, 16, 8, 16}, c.geometry, 0, 0, 35));
  for (const NamedPlace& place : row_places(c.problem, c.geometry)) {
    INFO(place.name);
    int in = 0, out = 0;
    for (int batch = 0; batch < 2; ++batch)
      for (int head = 0; head < 4; ++head)
        for (int query = 0; query < 40; ++query)
          (holds(place.place.rows, c.geometry, batch, head, query) ? in : out) += 1;
    CHECK(in > 0);
    CHECK(out > 0);
  }
}

TEST_CASE("scores on the last tile of the loop alone") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto places = tile_places(c.problem, c.geometry);
  const auto variant = in_place(variant_of(c, "temperature").at(3),
                                place_named(places, "the last tile of the loop"));
  REQUIRE(variant.has_value());
  CHECK(variant->label() == "temperature(kappa = 3, only in = the last tile of the loop)");
  check_output(c, *variant, [](const Formula& f) {
    Vec s = f.scores();
    const int last = f.row.query / 16;
    for (int j = 0; j < f.keys(); ++j)
      if (f.tile_of(j) == last) s[static_cast<std::size_t>(j)] *= 3;
    return f.attend(s);
  });
}

TEST_CASE("the mask on tiles that it cuts alone, inverted there") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto places = tile_places(c.problem, c.geometry);
  const auto variant = in_place(variant_of(c, "mask-inverted", {"last = hidden", "a visible key"}),
                                place_named(places, "tiles in which the mask hides a key"));
  REQUIRE(variant.has_value());
  check_output(c, *variant, [](const Formula& f) {
    Vec s(static_cast<std::size_t>(f.keys()));
    for (int j = 0; j < f.keys(); ++j) {
      const int tile = f.row.query / 16;
      const bool sees = f.tile_of(j) < tile || (f.tile_of(j) == tile && !f.sees(f.row.query, j));
      s[static_cast<std::size_t>(j)] = sees ? f.scale() * f.dot(f.row.query, j) : -kInf;
    }
    return largest(s) == -kInf ? Vec(16, 0.0) : f.attend(s);
  });
}

TEST_CASE("P V of odd tiles twice, of a last tile that is not full not at all") {
  const testing::Case c = make_case({.seqlen_k = 37});
  const auto times_of_tile = [](const Formula& f, auto&& times) {
    Vec p = exps(f.scores(), largest(f.scores()));
    const double l = total(p);
    for (int j = 0; j < f.keys(); ++j) p[static_cast<std::size_t>(j)] *= times(f.tile_of(j)) / l;
    return f.weighted(p);
  };
  const auto places = tile_places(c.problem, c.geometry);
  const auto twice = in_place(variant_of(c, "product-times-n", {"n = 2)"}),
                              place_named(places, "odd tiles of the loop, the first being 0"));
  REQUIRE(twice.has_value());
  check_output(c, *twice, [&](const Formula& f) {
    return times_of_tile(f, [](int tile) { return tile % 2 != 0 ? 2.0 : 1.0; });
  });
  check_output(c, variant_of(c, "product-left-out", {"not full"}), [&](const Formula& f) {
    return times_of_tile(f, [](int tile) { return tile == 2 ? 0.0 : 1.0; });
  });
}

TEST_CASE("in some rows alone every bug can be: l is missing in the last query tile") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto variant =
      in_place(variant_of(c, "l-missing"),
               place_named(row_places(c.problem, c.geometry), "query tile 2, the last"));
  REQUIRE(variant.has_value());
  check_output(c, *variant, [](const Formula& f) {
    const Vec s = f.scores();
    const Vec p = exps(s, largest(s));
    return f.weighted(f.row.query >= 32 ? p : testing::times(1 / total(p), p));
  });
}

TEST_CASE("what is carried from tile to tile is on no single tile, and nothing is in two places") {
  const testing::Case c = make_case({.mask = kCausal});
  const NamedPlace last = tile_places(c.problem, c.geometry).back();
  CHECK_FALSE(in_place(variant_of(c, "alpha-missing-o"), last).has_value());
  CHECK_FALSE(in_place(variant_of(c, "l-missing"), last).has_value());
  const NamedPlace head = row_places(c.problem, c.geometry).front();
  const auto once = in_place(variant_of(c, "l-missing"), head);
  REQUIRE(once.has_value());
  CHECK_FALSE(in_place(*once, head).has_value());
}

}  // namespace
}  // namespace attn_diag::reference
