#include "harness/report/page.h"

#include <fstream>
#include <limits>

#include "harness/report/map_png.h"
#include "harness/report/map_text.h"
#include "harness/testing/captures.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag::report {
namespace {

ErrorMap small_map() {
  ErrorMap map;
  map.tensor = Tensor::kS;
  map.head = 3;
  map.across = Axis::kKey;
  map.first_query = 16;
  map.queries = 4, map.columns = 6;
  map.by_query = 2, map.by_column = 2;
  map.worst = {0.5F, 5.0F, -1.0F, 2000.0F, std::numeric_limits<float>::infinity(), 0.0F};
  return map;
}

TEST_CASE("what others wrote is text on the page, wherever it stands") {
  CHECK(escape("a < b && \"c\"") == "a &lt; b &amp;&amp; &quot;c&quot;");
  PageView view;
  view.headline = "COULD NOT COMPARE: </script><b>&";
  view.subject = "<img src=x>";
  view.no_lines = view.no_diagnosis = view.no_check = view.no_maps = "not known";
  const std::string page = page_html(view, "var d3 = '</script>';");
  CHECK_THAT(page, contains("&lt;/script&gt;&lt;b&gt;&amp;"));
  CHECK_THAT(page, contains("var d3 = '<\\/script>';"));
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("<b>") == std::string::npos);
}

TEST_CASE(
    "an excerpt has the lines around, the one marked, and nothing where the source is not there") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder / "k.cu";
  std::ofstream(path) << "one\ntwo\nx < y;\nfour\nfive\n";
  const std::string excerpt = source_excerpt(path, 3, 1);
  CHECK_THAT(excerpt, contains("<i>2</i>two\n<mark><i>3</i>x &lt; y;</mark>\n<i>4</i>four"));
  CHECK(excerpt.find("five") == std::string::npos);
  CHECK(source_excerpt(path, 9, 1).empty());
  CHECK(source_excerpt(folder / "none.cu", 1, 1).empty());
}

TEST_CASE("a map in a terminal has a character for each bin, and says what a bin is") {
  Problem p;
  p.heads = 8;
  const std::string text = map_text(small_map(), p, {false, false, 80});
  CHECK_THAT(
      text,
      contains("Error of S, head 3, by query (down) and key (across),\n  the worst of each 2 x 2"));
  CHECK_THAT(text, contains("      16  .-\n"));
  CHECK_THAT(text, contains("      18  #N.\n"));
  CHECK_THAT(text, contains("blank masked"));
  // In half of the room: the worst of two bins each.
  ErrorMap wide = small_map();
  wide.columns = 400, wide.by_column = 1;
  wide.worst.assign(800, 0.1F);
  wide.worst[799] = 50.0F;
  std::size_t longest = 0, at = 0;
  const std::string reduced = map_text(wide, p, {false, false, 80});
  for (std::size_t end; (end = reduced.find('\n', at)) != std::string::npos; at = end + 1)
    longest = std::max(longest, end - at);
  CHECK(longest <= 80);
  CHECK_THAT(reduced, contains(".+\n"));
}

TEST_CASE("a histogram has a bar a bin, and one wrong cell shows") {
  ErrorHistogram h;
  h.tensor = Tensor::kO;
  h.by_limit[7] = 1 << 20;  // up to 1
  h.by_limit[9] = 1;        // up to 10
  const std::string text = histogram_text(h, {false, false, 80});
  CHECK_THAT(text, contains("     <= 1x     1,048,576  ####"));
  CHECK_THAT(text, contains("    <= 10x             1  ##"));
  CHECK(histogram_text(ErrorHistogram{}, {}).empty());
}

TEST_CASE("heads are a character each") {
  TensorComparison c;
  c.tensor = Tensor::kO;
  c.picture_shape = {1, 3, 1, 1};
  c.picture = {{0.5, 0, 64}, {30, 2, 64}, {0, 0, 0}};
  Region region;
  region.origin = {0, 4, 0};
  CHECK_THAT(heads_text(c, region, {false, false, 80}), contains("            head 4  .+ \n"));
}

TEST_CASE("gnuplot is given every bin, and text that cannot end its strings") {
  const std::string program = map_program(small_map(), "it's", "a'b.png");
  CHECK_THAT(program, contains("set title 'it''s'"));
  CHECK_THAT(program, contains("set output 'a''b.png'"));
  CHECK_THAT(program, contains("-0.500 0.699 ? \n3.301 6.5 -1.000 \nEND"));
  CHECK_THAT(program, contains("($1*2+0.5):($2*2+16.5):3"));
}

}  // namespace
}  // namespace attn_diag::report
