#include "harness/report/text.h"

#include <cmath>
#include <limits>

#include "harness/report/comparison_text.h"
#include "harness/report/table.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::report {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST_CASE("a ratio has two or three digits and says inf") {
  CHECK(ratio(0) == "0x");
  CHECK(ratio(0.001) == "<0.01x");
  CHECK(ratio(0.314) == "0.31x");
  CHECK(ratio(37.4) == "37x");
  CHECK(ratio(580000) == "5.8e+05x");
  CHECK(ratio(kInf) == "inf");
}

TEST_CASE("a function's name is told without types") {
  CHECK(short_function_name("fa1") == "fa1");
  CHECK(short_function_name("void ns::fa1<64, (Mask)1>(float*) [clone .cold]") == "ns::fa1<...>");
  CHECK(short_function_name("(anonymous namespace)::tile(int (*)(int))") == "tile");
  CHECK(short_function_name(
            "void mma<false>(half const*)::{lambda(half*, half const*, int)#1}::operator()(half*, "
            "half const*, int) const") == "a lambda in mma<...>");
  CHECK(short_function_name("Tile::row(int) const") == "Tile::row");
}

TEST_CASE("what zeros would have scored says how little agreeing tells") {
  const auto text = [](double zeros) {
    Comparison comparison;
    TensorComparison o;
    o.tensor = Tensor::kO;
    o.compared = 1;
    o.zeros_err_over_bound = zeros;
    comparison.tensors = {o};
    return zeros_text(comparison);
  };
  CHECK(text(0.5) ==
        "  An all-zeros o would have scored 0.50x: these inputs cannot show a wrong o.\n");
  CHECK(text(1.56) ==
        "  An all-zeros o would have scored 1.56x: the bound is so wide that much of what is wrong "
        "would agree.\n");
  CHECK(text(1900) == "  An all-zeros o would have scored 1.9e+03x.\n");
}

TEST_CASE("counts have separators") {
  CHECK(count(0) == "0");
  CHECK(count(999) == "999");
  CHECK(count(1000) == "1,000");
  CHECK(count(1234567) == "1,234,567");
  CHECK(count(-1234) == "-1,234");
}

TEST_CASE("a percentage never rounds to none or all") {
  CHECK(percent(0, 8) == "0.0%");
  CHECK(percent(8, 8) == "100.0%");
  CHECK(percent(1, 1000000) == "<0.1%");
  CHECK(percent(999999, 1000000) == ">99.9%");
}

TEST_CASE("numbers name NaN and infinity") {
  CHECK(number(std::nan("")) == "nan");
  CHECK(number(-std::nan("")) == "nan");
  CHECK(number(-kInf) == "-inf");
  CHECK(exact(0.1f) == "0.100000001");
}

TEST_CASE("sizes are in binary units") {
  CHECK(bytes(512) == "512 B");
  CHECK(bytes(1536) == "1.5 KiB");
  CHECK(bytes(4.0 * 1024 * 1024 * 1024 * 1024) == "4.0 TiB");
}

TEST_CASE("a word is quoted for the shell where it must be") {
  CHECK(shell_quote("split_k@reduce-counts-l-twice") == "split_k@reduce-counts-l-twice");
  CHECK(shell_quote("") == "''");
  CHECK(shell_quote("a b") == "'a b'");
  CHECK(shell_quote("it's") == "'it'\\''s'");
  CHECK(shell_quote("$(x)") == "'$(x)'");
  CHECK(shell_quote("~/x") == "'~/x'");
}

TEST_CASE("the alignment of a causal mask is named where it matters") {
  Problem p;
  p.mask.kind = MaskKind::kCausal;
  p.mask.alignment = CausalAlignment::kBottomRight;
  p.seqlen_q = 3, p.seqlen_k = 3;
  CHECK(mask_text(p) == "causal");
  p.seqlen_k = 4;
  CHECK(mask_text(p) == "causal:bottom_right");
  p.mask.kind = MaskKind::kWindow;
  p.mask.window_left = 5, p.mask.window_right = 2;
  CHECK(mask_text(p) == "window:5,2");
}

TEST_CASE("a place names tiles from the index on the tensor's axes") {
  Problem p;
  p.seqlen_q = p.seqlen_k = 200;
  const Geometry g;  // 64x64
  CHECK(place_text(Tensor::kS, {0, 1, 130, 70}, p, g) ==
        "head 1, query 130, query tile 2, kv tile 1, key 70");
  CHECK(place_text(Tensor::kPartialO, {0, 1, 5, 2, 7}, p, g) ==
        "head 1, query 5, query tile 0, kv tile 2, dim 7");
  CHECK(place_text(Tensor::kLse, {0, 1, 5}, p, g) == "head 1, query 5, query tile 0");
  p.batch = 2;
  CHECK(place_text(Tensor::kO, {1, 0, 0, 3}, p, g) ==
        "batch 1, head 0, query 0, query tile 0, dim 3");
}

TEST_CASE("sorted indices become ranges, cut where there are many") {
  CHECK(ranges({}) == "");
  CHECK(ranges({4}) == "4");
  CHECK(ranges({0, 1, 2, 3, 7, 9, 10}) == "0-3, 7, 9-10");
  CHECK(ranges({0, 2, 4, 6}, 2) == "0, 2, ...");
}

TEST_CASE("text is wrapped at the width and indented behind the first line") {
  CHECK(wrap("aa bb cc dd", 5, 2) == "aa bb\n  cc\n  dd");
  CHECK(wrap("short", 80, 4) == "short");
}

TEST_CASE("escape sequences and UTF-8 take the columns they show") {
  Style style;
  style.colour = true;
  CHECK(paint(style, Colour::kRed, "ab") != "ab");
  CHECK(display_width(paint(style, Colour::kRed, "ab")) == 2);
  CHECK(display_width("·░█") == 3);
  style.colour = false;
  CHECK(paint(style, Colour::kRed, "ab") == "ab");
}

TEST_CASE("a table aligns its columns and leaves out empty ones") {
  Table table({"name", ">n", "empty", "last"});
  table.add({"a", "1", "", "x"});
  table.add({"long", "1000", "", ""});
  CHECK(table.text({}) ==
        "  name     n  last\n"
        "  a        1  x\n"
        "  long  1000\n");
}

}  // namespace
}  // namespace attn_diag::report
