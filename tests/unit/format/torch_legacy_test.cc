#include <doctest/doctest.h>

#include <map>
#include <random>

#include "base/limits.h"
#include "torch_files.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::string_view kMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

std::string facts(const std::string& little = "\x88") {
  return p_dict({{"protocol_version", p_small(1001)}, {"little_endian", little}});
}

// The storages of keys[0] and so on: a count and the bytes.
struct Stored {
  std::string key;
  std::uint64_t count = 0;
  std::string bytes;
};

std::string p_sized(std::string_view key, unsigned count, std::string_view type = "FloatStorage",
                    const std::string& view = "N") {
  return p_tuple({p_text("storage"), p_global("torch", type), p_text(key), p_text("cpu"), p_small(count), view}) + "Q";
}

std::string legacy(const std::string& value, const std::vector<Stored>& storages) {
  std::string keys = "](", data;
  for (const Stored& one : storages) {
    keys += p_text(one.key);
    data += le64(one.count) + one.bytes;
  }
  return p_file(std::string(kMagic)) + p_file(p_small(1001)) + p_file(facts()) + p_file(value) + p_file(keys + "e") +
         data;
}

const std::string kFour(16, '#'), kTwo(16, '@');

std::string good_file() {
  return legacy(p_dict({{"a", p_tensor(p_sized("7", 4), 0, {2, 2}, {2, 1})},
                        {"t", p_tensor(p_sized("7", 4), 0, {2, 2}, {1, 2})},
                        {"b", p_tensor(p_sized("9", 2, "LongStorage"), 1, {1}, {1})}}),
                {{"7", 4, kFour}, {"9", 2, kTwo}});
}

}  // namespace

TEST_CASE("legacy: tensors lie in the storages behind the pickles") {
  const std::string bytes = good_file();
  for (const char* name : {"m.pt", "pytorch_model.bin", "no-suffix"}) {
    MemorySource source(bytes);
    CHECK(parse_file("place", name, source)->format == "torch legacy");
  }
  const Layout layout = parsed_torch(bytes);
  REQUIRE(names_of(layout) == std::vector<std::string>{"a", "t", "b"});
  const std::uint64_t begin = bytes.find("####");
  CHECK(range_of(layout.tensors[0]) == Range{begin, 16});
  CHECK(layout.tensors[0].strides.empty());
  CHECK(range_of(layout.tensors[1]) == Range{begin, 16});
  CHECK(layout.tensors[1].strides == Strides{1, 2});
  CHECK(layout.tensors[2].dtype == DType::i64);
  CHECK(range_of(layout.tensors[2]) == Range{bytes.find("@@@@") + 8, 8});
  REQUIRE(layout.cuts.size() == 2);
  CHECK(layout.cuts[0].offset == begin);
  CHECK(layout.cuts[1].length == 16);
  CHECK(layout.hidden.empty());
  CHECK(
      metadata_of(layout).at(std::string(kGlobals)).starts_with("torch._utils._rebuild_tensor_v2 torch.FloatStorage"));
  CHECK(metadata_of(layout).count(std::string(kOtherGlobals)) == 0);
}

TEST_CASE("legacy: views of storages, and modules with the source of their class") {
  const std::string view = p_tuple({p_text("8"), p_small(3), p_small(1)});
  const std::string module =
      p_tuple({p_text("module"), p_global("m", "Net"), p_text("m.py"), p_text("class Net")}) + "Q";
  const std::string net =
      p_global("copy_reg", "_reconstructor") + p_tuple({module, p_global("b", "object"), "N"}) + "R" +
      p_dict({{"_parameters", p_dict({{"w", p_tensor(p_sized("7", 4, "FloatStorage", view), 0, {1}, {1})}})},
              {"_modules", "}"}}) +
      "b";
  const std::string bytes = legacy(net, {{"7", 4, kFour}});
  const Layout layout = parsed_torch(bytes);
  REQUIRE(names_of(layout) == std::vector<std::string>{"w"});
  CHECK(range_of(layout.tensors[0]) == Range{bytes.find("####") + 12, 4});
  CHECK(layout.hidden.empty());
}

TEST_CASE("legacy: files that cannot be read are opaque, with the reason") {
  const std::string w = p_tensor(p_sized("7", 4), 0, {4}, {1});
  CHECK(why_opaque(legacy(w, {{"7", 3, kFour}})) == "expected 4 elements in the storage \"7\", got 3 and 16 bytes");
  CHECK(why_opaque(legacy(w, {{"7", 4, "short"}})) == "expected 4 elements in the storage \"7\", got 4 and 5 bytes");
  CHECK(why_opaque(legacy(w, {{"7", 4, kFour}, {"8", 4, kFour}})) ==
        "expected a tensor in the storage \"8\", got none");
  CHECK(why_opaque(legacy(w, {{"7", 4, kFour}, {"7", 4, kFour}})) == "expected the storage \"7\" once, got it twice");
  CHECK(why_opaque(legacy(p_tensor(p_sized("7", 4, "NewStorage"), 0, {4}, {1}), {{"7", 4, kFour}})) ==
        "a type that weft lacks, torch.NewStorage");
  const std::string head = p_file(std::string(kMagic));
  CHECK(why_opaque(head + p_file(p_small(1002)) + p_file(facts()) + p_file("N") + p_file("]")) ==
        "expected a file of PyTorch of version 1001, got another one");
  CHECK(why_opaque(head + p_file(p_small(1001)) + p_file(facts("\x89")) + p_file("N") + p_file("]"))
            .starts_with("expected a little-endian file"));
  CHECK(why_opaque(head + p_file(p_small(1001)) + p_file(facts()) + p_file("N") + p_file("N")) ==
        "expected a list of the keys of the storages");
  CHECK(why_opaque(head + p_file(p_call(p_global("os", "system"), {}))).starts_with("pickle: expected 1 bytes"));
  CHECK(metadata_of(parsed_torch(head + p_file(p_global("os", "system")))).at(std::string(kOtherGlobals)) ==
        "os.system");
  // A tensor whose storage the file has not is hidden, and the others are shown.
  const Layout layout =
      parsed_torch(legacy(p_dict({{"w", w}, {"x", p_tensor(p_sized("1", 4), 0, {4}, {1})}}), {{"7", 4, kFour}}));
  CHECK(names_of(layout) == std::vector<std::string>{"w"});
  REQUIRE(layout.hidden.size() == 1);
  CHECK(layout.hidden[0].why == "its storage is not in the file");
  // A storage of a type that weft lacks does not hide those behind it.
  const Layout packed =
      parsed_torch(legacy(p_dict({{"q", p_tensor(p_sized("1", 8, "QUInt4x2Storage"), 0, {8}, {1})}, {"w", w}}),
                          {{"1", 8, "12345678"}, {"7", 4, kFour}}));
  CHECK(names_of(packed) == std::vector<std::string>{"w"});
}

TEST_CASE("legacy: pickles may be longer than what is read first") {
  const std::string w = p_tensor(p_sized("7", 4), 0, {4}, {1});
  const std::string bytes =
      legacy(p_dict({{"text", p_text(std::string(3U << 20U, 'x'))}, {"w", w}}), {{"7", 4, kFour}});
  const Layout layout = parsed_torch(bytes);
  REQUIRE(names_of(layout) == std::vector<std::string>{"w"});
  CHECK(range_of(layout.tensors[0]) == Range{bytes.size() - 16, 16});
}

TEST_CASE("pickle files: arrays of numpy are shown, and globals are listed") {
  const std::string dtype =
      p_call(p_global("numpy", "dtype"), {p_text("f4")}) + p_tuple({p_small(3), p_text("<"), "N", "N", "N"}) + "b";
  const std::string array = p_global("numpy._core.multiarray", "_reconstruct") + ")R" +
                            p_tuple({p_small(1), p_numbers({2, 3}), dtype, "\x89", "C\x18" + std::string(24, 'n')}) +
                            "b";
  const std::string bytes = p_file(p_dict({{"n", array}}));
  const Layout layout = parsed_torch(bytes);
  CHECK(layout.format == "pickle");
  REQUIRE(names_of(layout) == std::vector<std::string>{"n"});
  CHECK(range_of(layout.tensors[0]) == Range{bytes.find("nnnn"), 24});
  const Layout two = parsed_torch(p_file("N") + p_file(p_global("os", "system")) + "broken");
  CHECK(two.format == "pickle");
  CHECK(two.tensors.empty());
  CHECK(metadata_of(two).at(std::string(kOtherGlobals)) == "os.system");
  const std::string padded = p_file(p_text(std::string(2U << 20U, 'x')));
  CHECK(metadata_of(parsed_torch(p_file("N") + padded + p_file(p_global("a", "b")))).at(std::string(kGlobals)) ==
        "a.b");
  CHECK(why_opaque("\x80\4\x95 no pickle").starts_with("pickle: "));
  CHECK(parsed_torch(std::string("\x80\4") + '\0').metadata.empty());
}

TEST_CASE("pickle files: globals are listed whatever protocol and opcode a pickle begins with") {
  const auto others = [](const std::string& bytes) {
    const auto metadata = metadata_of(parsed_torch(bytes));
    const auto found = metadata.find(std::string(kOtherGlobals));
    return found == metadata.end() ? "" : found->second;
  };
  CHECK(others("cos\nsystem\n(S'x'\ntR.") == "os.system");
  CHECK(others("(S'x'\nios\nsystem\n.") == "os.system");
  CHECK(others("S'" + std::string(4000, 'x') + "'\n0cos\nsystem\n.") == "os.system");
  CHECK(why_opaque("S'" + std::string(5000, 'x') + "'\n0cos\nsystem\n.").starts_with("expected lines of a pickle"));
  CHECK(others("\x80\1cos\nsystem\n.") == "os.system");
  CHECK(others("\x80\2I1\n0cos\nsystem\n.") == "os.system");
  CHECK(others("\x80\4\x8d" + le64(2) + "os\x8c\6system\x93.") == "os.system");
}

TEST_CASE("pickle files: other bytes under such a name are kept without a remark") {
  for (const std::string& bytes : {std::string(64, '\0'), std::string("X\1\2\3\4") + std::string(64, '#'),
                                   std::string("plain text, which is not read"), std::string("(((((((((((((((((((")}) {
    const Layout layout = parsed_torch(bytes);
    CHECK(layout.format.empty());
    CHECK(layout.metadata.empty());
  }
}

TEST_CASE("legacy: truncated and changed files are read or kept") {
  const std::string good = good_file();
  for (std::size_t length = 3; length < good.size(); ++length) why_opaque(good.substr(0, length));
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10'000; ++round) {
    std::string bytes = good;
    for (std::uint64_t changes = 1 + random() % 3; changes-- > 0;)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    parsed_torch(bytes);
  }
}
