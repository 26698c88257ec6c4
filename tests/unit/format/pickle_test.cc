#include "format/torch/pickle.h"

#include <doctest/doctest.h>

#include <random>

#include "allocation.h"
#include "base/limits.h"
#include "pickles.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Kind = Pickle::Kind;

Error refused(const std::string& bytes) {
  Pickle pickle(bytes);
  const auto value = pickle.read_next();
  if (value.ok()) FAIL("a malformed pickle was read");
  CHECK((value.error().code == Errc::invalid || value.error().code == Errc::unsupported));
  CHECK(value.error().message.find('\n') == std::string::npos);
  CHECK(pickle.at_end());
  return value.error();
}

std::vector<Pickle::Value> items_of(const Pickle& pickle, Pickle::Value value) {
  return pickle.items(value).first(SIZE_MAX);
}

std::vector<std::pair<Pickle::Value, Pickle::Value>> pairs_of(const Pickle& pickle, Pickle::Value dict) {
  std::vector<std::pair<Pickle::Value, Pickle::Value>> pairs;
  for (const auto& pair : pickle.pairs(dict)) pairs.push_back(pair);
  return pairs;
}

std::vector<std::string> globals_of(const std::string& bytes) {
  Pickle pickle(bytes);
  while (!pickle.at_end()) static_cast<void>(pickle.read_next());
  return pickle.globals();
}

}  // namespace

TEST_CASE("pickle: values of all kinds") {
  const std::string numbers =
      "(K\7M" + le16(257) + "J" + le32(0xffffffff) + "\x8a\2" + std::string("\0\xff", 2) + "I12\nI01\nL-5L\nt.";
  Pickle second(numbers);
  const std::vector<Pickle::Value> items = items_of(second, must(second.read_next()));
  REQUIRE(items.size() == 7);
  CHECK(second.integer(items[0]) == 7);
  CHECK(second.integer(items[1]) == 257);
  CHECK(second.integer(items[2]) == -1);
  CHECK(second.integer(items[3]) == -256);
  CHECK(second.integer(items[4]) == 12);
  CHECK(second.boolean(items[5]));
  CHECK(second.integer(items[6]) == -5);
  Pickle third("(N\x88\x89G12345678S'a b'\nVv\nU\1xC\2yz" + p_text("long") + "]}\x8f)t.");
  const std::vector<Pickle::Value> others = items_of(third, must(third.read_next()));
  REQUIRE(others.size() == 13);
  CHECK(others[0] == Pickle::kNone);
  CHECK(third.kind(others[3]) == Kind::number);
  CHECK(third.text(others[4]) == "a b");
  CHECK(third.text(others[5]) == "v");
  CHECK(third.text(others[6]) == "x");
  CHECK(third.kind(others[7]) == Kind::bytes);
  CHECK(third.bytes(others[7]).length == 2);
  CHECK(third.text(others[8]) == "long");
  CHECK(third.kind(others[9]) == Kind::list);
  CHECK(third.kind(others[10]) == Kind::dict);
  CHECK(third.kind(others[12]) == Kind::tuple);
}

TEST_CASE("pickle: lists and dicts grow, tuples and the memo") {
  const std::string grown = "]q" + std::string(1, '\0') + "(K\1K\2eK\3a}(" + p_text("a") + "K\1" + p_text("b") +
                            "K\2uNK\5s\x86h" + std::string(1, '\0') + "\x86.";
  Pickle second(grown);
  const auto outer = items_of(second, must(second.read_next()));
  REQUIRE(outer.size() == 2);
  const auto inner = items_of(second, outer[0]);
  CHECK(items_of(second, inner[0]).size() == 3);
  CHECK(outer[1] == inner[0]);
  const auto pairs = pairs_of(second, inner[1]);
  REQUIRE(pairs.size() == 3);
  CHECK(second.text(pairs[0].first) == "a");
  CHECK(second.integer(pairs[1].second) == 2);
  CHECK(pairs[2].first == Pickle::kNone);
}

TEST_CASE("pickle: calls are values, and nothing runs") {
  Pickle pickle(p_file(p_call(p_global("os", "system"), {p_text("touch /tmp/weft-ran")})));
  const auto value = must(pickle.read_next());
  REQUIRE(pickle.kind(value) == Kind::call);
  CHECK(pickle.global(pickle.call(value).function) == "os.system");
  CHECK(pickle.text(items_of(pickle, pickle.call(value).arguments)[0]) == "touch /tmp/weft-ran");
  CHECK(pickle.globals() == std::vector<std::string>{"os.system"});
  CHECK(globals_of("(S'x'\nios\nsystem\n.") == std::vector<std::string>{"os.system"});
  CHECK(globals_of("(cbuiltins\neval\nS'1'\no.") == std::vector<std::string>{"builtins.eval"});
  CHECK(globals_of(p_text("os") + p_text("popen") + "\x93)\x81.") == std::vector<std::string>{"os.popen"});
  // The name of this global is the result of a call.
  CHECK(globals_of(p_text("os") + p_call(p_global("builtins", "chr"), {p_small(97)}) + "\x93.") ==
        std::vector<std::string>{"builtins.chr", "os.?"});
  // A broken tail, and a second pickle behind the first.
  CHECK(globals_of(p_global("os", "system") + "\xff") == std::vector<std::string>{"os.system"});
  CHECK(globals_of("N." + p_file(p_global("os", "system"))) == std::vector<std::string>{"os.system"});
  CHECK(globals_of(p_file(p_global("a", "b") + p_global("a", "b") + p_global("c", "d"))) ==
        std::vector<std::string>{"a.b", "c.d"});
}

TEST_CASE("pickle: globals are listed wherever a pickle names them") {
  // By names in the memo, as protocol 4 writes a second global of one module.
  CHECK(globals_of(p_text("os") + "\x94" + p_text("system") + "\x94\x93" + "0h" + std::string(1, '\0') +
                   p_text("popen") + "\x93.") == std::vector<std::string>{"os.system", "os.popen"});
  // By names with escapes.
  CHECK(globals_of("S'o\\x73'\nS's\\171stem'\n\x93.") == std::vector<std::string>{"os.system"});
  CHECK(globals_of("Vo\\u0073\nVs\\U00000079stem\n\x93.") == std::vector<std::string>{"os.system"});
  // In a persistent id, as an instance, in the arguments of the call of another, and in a state.
  CHECK(globals_of(p_tuple({p_global("a", "b")}) + "Q.") == std::vector<std::string>{"a.b"});
  CHECK(globals_of("(ia\nb\n.") == std::vector<std::string>{"a.b"});
  CHECK(globals_of(p_call(p_global("a", "b"), {p_call(p_global("c", "d"), {})}) + p_global("e", "f") + "b.") ==
        std::vector<std::string>{"a.b", "c.d", "e.f"});
  // A pickle may drop the value of a global at once.
  CHECK(globals_of(p_global("a", "b") + "0N.") == std::vector<std::string>{"a.b"});
  // A registered extension, whose class no pickle says.
  CHECK(globals_of(std::string("\x82\x07.")) == std::vector<std::string>{"copyreg.extension_7"});
  CHECK(globals_of("\x83" + le16(300) + ".") == std::vector<std::string>{"copyreg.extension_300"});
  CHECK(globals_of("\x84" + le32(70'000) + ".") == std::vector<std::string>{"copyreg.extension_70000"});
  CHECK(says(refused("\x82\x07."), "a registered extension"));
}

TEST_CASE("pickle: texts of protocol 0 have escapes") {
  const auto text_of = [](const std::string& line) {
    Pickle pickle(line + "\n.");
    const Pickle::Value value = must(pickle.read_next());
    return std::string(pickle.text(value));
  };
  CHECK(text_of(R"(S'a\\b\'\n\x41\101\0z')") == std::string("a\\b'\nAA\0z", 9));
  CHECK(text_of(R"(S'\q\x4\')") == R"(\q\x4\)");
  CHECK(text_of(R"(V\u00e9\u20ac\U0001f600\n)") == "\u00e9\u20ac\U0001f600\\n");
  CHECK(text_of(R"(V\\u0041\u005c\uffg0\U00110000)") == R"(\\u0041\\uffg0\U00110000)");
}

TEST_CASE("pickle: state, items and pairs of the result of a call") {
  Pickle pickle(p_global("m", "f") + ")R" + "K\1a(K\2K\3e" + p_text("k") + "K\4sK\5b.");
  const auto value = must(pickle.read_next());
  const Pickle::Call& call = pickle.call(value);
  CHECK(items_of(pickle, call.items).size() == 3);
  CHECK(pairs_of(pickle, call.pairs).size() == 1);
  CHECK(pickle.integer(call.state) == 5);
}

TEST_CASE("pickle: bad opcodes, counts and places are refused") {
  for (const char* opcode : {"\x97", "\x98", "\xff", "!", "A"})
    CHECK(says(refused(std::string(opcode) + "1234."), "expected an opcode of a pickle at 0"));
  CHECK(says(refused("\x80\6."), "a protocol up to 5, got 6"));
  for (const std::string& bytes : {"X" + le32(UINT32_MAX), "\x8d" + le64(1ULL << 62U), "\x8e" + le64(UINT64_MAX),
                                   "\x8b" + le32(0x80000000), "T" + le32(0xffffffff),
                                   std::string("U\x05"
                                               "1234"),
                                   std::string("X\1"), std::string("")})
    CHECK(says(refused(bytes), "got "));
  CHECK(says(refused("h\1."), "expected a value in the memo"));
  CHECK(says(refused("g5\n."), "expected a value in the memo"));
  CHECK(says(refused("g-1\n."), "expected a number of the memo"));
  CHECK(says(refused("Nr" + le32(0x7fffffff) + "."), "numbers of the memo in order"));
  CHECK(says(refused("N(."), "expected a value on the stack"));
  CHECK(says(refused("Nt."), "expected a mark"));
  CHECK(says(refused("}(NuNa."), "expected a value for each key"));
  CHECK(says(refused("NNNs."), "expected a dict"));
  CHECK(says(refused("NNa."), "expected a list"));
  CHECK(says(refused("(o."), "expected a class"));
  CHECK(says(refused("I" + std::string(5000, '1') + "\n."), "expected lines of a pickle of at most 4096 bytes"));
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    CAPTURE(opcode);
    const std::string one(1, static_cast<char>(opcode));
    if (one == "." || one == "(") continue;
    Pickle alone(one);
    CHECK_FALSE(alone.read_next().ok());
  }
}

TEST_CASE("pickle: a list in itself and 100,000 nested lists are read") {
  Pickle circle("]q" + std::string(1, '\0') + "h" + std::string(1, '\0') + "a.");
  const auto value = must(circle.read_next());
  CHECK(items_of(circle, value) == std::vector<Pickle::Value>{value});
  Pickle nested(std::string(100'000, ']') + std::string(99'999, 'a') + ".");
  CHECK(items_of(nested, must(nested.read_next())).size() == 1);
}

TEST_CASE("pickle: a small file cannot make the reader allocate much") {
  for (const std::string& bytes :
       {"X" + le32(UINT32_MAX), "\x8e" + le64(1ULL << 40U), "Nr" + le32(0x00ffffff) + ".", std::string("Np8000000\n."),
        std::string("\x95") + le64(UINT64_MAX) + "X" + le32(1U << 30U)}) {
    Pickle pickle(bytes);
    reset_allocations();
    CHECK_FALSE(pickle.read_next().ok());
    CHECK(allocations().largest <= 4096);
  }
}

TEST_CASE("pickle: changed pickles are read or refused") {
  const std::string good = p_file(p_dict(
      {{"w", p_tensor(p_storage("0"), 1, {2, 3}, {3, 1})}, {"n", p_global("a", "b") + ")\x81K\1b"}, {"l", "](K\1Ne"}}));
  CHECK_FALSE(globals_of(good).empty());
  for (std::size_t length = 0; length < good.size(); ++length) refused(good.substr(0, length));
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (std::uint64_t changes = 1 + random() % 4; changes-- > 0;)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    static_cast<void>(globals_of(bytes));
  }
}
