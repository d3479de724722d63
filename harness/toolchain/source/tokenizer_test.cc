#include "harness/testing/catch_for_tests.h"
#include "harness/toolchain/source/source_error.h"
#include "harness/toolchain/source/token.h"

using attn_diag::source::SourceError;
using attn_diag::source::string_value;
using attn_diag::source::Token;
using attn_diag::source::tokenize;
using attn_diag::source::TokenKind;
using attn_diag::source::TokenList;

namespace {

std::vector<std::string> texts(std::string_view text) {
  std::vector<std::string> result;
  const TokenList list = tokenize(text, "x.cu");
  for (const Token& token : list.tokens) result.emplace_back(token.text);
  return result;
}
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("launch brackets are tokens of their own, template brackets close one by one") {
  CHECK(texts("k<A<B<C>>><<<g, 1>>>(x);") == Texts{"k", "<", "A", "<",   "B", "<", "C",
                                                   ">", ">", ">", "<<<", "g", ",", "1",
                                                   ">", ">", ">", "(",   "x", ")", ";"});
  CHECK(texts("a << b <<= c <=> d") == Texts{"a", "<<", "b", "<<=", "c", "<=>", "d"});
  CHECK(texts("operator<<<T>") == Texts{"operator", "<<", "<", "T", ">"});
  CHECK(texts("A<::B>") == Texts{"A", "<", "::", "B", ">"});
}

TEST_CASE("what stands in strings, characters and comments is no code") {
  CHECK(texts(R"(f("a<<<1>>>\"b", '"', '\'') // k<<<1, 1>>>()
/* <<< */ g)") == Texts{"f", "(", R"("a<<<1>>>\"b")", ",", "'\"'", ",", R"('\'')", ")", "g"});
  CHECK(texts("R\"x(k<<<1>>>\")y\" )x\" z") == Texts{"R\"x(k<<<1>>>\")y\" )x\"", "z"});
  CHECK(texts("u8R\"(\n)\"_s L\"b\" u'c'") == Texts{"u8R\"(\n)\"_s", "L\"b\"", "u'c'"});
}

TEST_CASE("numbers keep their separators, exponents and suffixes") {
  CHECK(texts("1'000'000u 0x1p-3f .5e+3 1e-3-x 0b1'0 12_km") ==
        Texts{"1'000'000u", "0x1p-3f", ".5e+3", "1e-3", "-", "x", "0b1'0", "12_km"});
}

TEST_CASE("a line that is continued is one directive, and words may be continued") {
  const TokenList list = tokenize("#define A \\\n 1\nb\\\nc d", "x.cu");
  REQUIRE(list.tokens.size() == 3);
  CHECK(list.tokens[0].kind == TokenKind::kDirective);
  CHECK(list.tokens[0].text == "#define A \\\n 1");
  CHECK(list.tokens[1].text == "b\\\nc");
  CHECK(list.tokens[1].line == 3);
  CHECK(list.tokens[2].line == 4);
}

TEST_CASE("line markers say which file and line a token is on, and whether that is the system's") {
  const TokenList list =
      tokenize("a\n# 41 \"in \\\"x\\\".h\" 1 3 4\nb\nc\n# 7 \"x.cu\" 2\nd\n#line 90\ne", "x.cu");
  REQUIRE(list.tokens.size() == 5);
  const auto place = [&](std::size_t i) {
    return list.files[list.tokens[i].file] + ":" + std::to_string(list.tokens[i].line);
  };
  CHECK(place(0) == "x.cu:1");
  CHECK(place(1) == "in \"x\".h:41");
  CHECK(place(2) == "in \"x\".h:42");
  CHECK(list.tokens[2].is_system);
  CHECK(place(3) == "x.cu:7");
  CHECK_FALSE(list.tokens[3].is_system);
  CHECK(place(4) == "x.cu:90");
}

TEST_CASE("a literal or comment without end is an error at its line") {
  for (const char* text : {"a\n\"b", "a\n'b", "a\nR\"x(b)\"", "a\n/* b"}) {
    try {
      tokenize(text, "x.cu");
      FAIL(text);
    } catch (const SourceError& e) {
      CHECK(e.where().line == 2);
      CHECK(e.where().file == "x.cu");
    }
  }
}

TEST_CASE("the value of a string has its escapes resolved, that of a raw one does not") {
  CHECK(string_value(R"("a\tb\n\"\\\x41\101")") == "a\tb\n\"\\AA");
  CHECK(string_value("R\"(a\\n)\"") == "a\\n");
}
