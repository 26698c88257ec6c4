// Pickles that are small and describe much.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include "allocation.h"
#include "base/limits.h"
#include "torch_files.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::string put(unsigned number) {
  return "r" + le32(number);
}
std::string get(unsigned number) {
  return "j" + le32(number);
}
std::string repeated(const std::string& text, unsigned count) {
  std::string out;
  for (unsigned i = 0; i < count; ++i) out += text;
  return out;
}

// Parses the archive of a value, and checks the memory that it takes: a value that is shared is not copied for each of
// its uses.
Layout bounded(const std::string& value) {
  const std::string bytes = torch_archive(value);
  reset_allocations();
  Layout layout = parsed_torch(bytes);
  const Allocations used = allocations();
  CHECK(used.total <= (64U << 20U) + 128 * bytes.size());
  return layout;
}

const std::string kTensor = p_tensor(p_storage("1"), 0, {2}, {1});

}  // namespace

TEST_CASE("torch: a large value that is used many times is not copied for each use") {
  constexpr unsigned kLarge = 20'000, kUses = 20'000;
  const std::string numbers = repeated("K\1", kLarge);
  const std::string call = p_global("m", "f") + put(1);
  const std::string rebuild = p_global("torch._utils", "_rebuild_tensor_v2") + put(1);
  const std::string storage = p_storage("1") + put(2);
  const auto uses = [](const std::string& large, const std::string& use) {
    return "(" + large + put(0) + "0" + use + "t";
  };
  SUBCASE("as the arguments of a call") {
    bounded("(" + call + "(" + numbers + "t" + put(0) + "0" + repeated(get(1) + get(0) + "R", kUses) + "t");
  }
  SUBCASE("as the arguments of a tensor") {
    bounded("(" + rebuild + "(" + numbers + "t" + put(0) + "0" + repeated(get(1) + get(0) + "R", kUses) + "t");
  }
  SUBCASE("as the shape and the strides of a tensor") {
    const Layout layout = bounded("(" + rebuild + storage + "(" + numbers + "t" + put(0) +
                                  repeated(get(1) + "(" + get(2) + "K\0" + get(0) + get(0) + "\x89NtR", kUses) + "t");
    CHECK(layout.tensors.empty());
  }
  SUBCASE("as the metadata of a tensor") {
    bounded("(" + rebuild + storage + "}(" + numbers + "u" + put(0) +
            repeated(get(1) + "(" + get(2) + "K\0K\2\x85K\1\x85\x89N" + get(0) + "tR", kUses) + "t");
  }
  SUBCASE("as a key of a dict") {
    bounded(uses("(" + repeated("U" + std::string(1, '\0'), kLarge) + "t", "}(" + repeated(get(0) + "N", kUses) + "u"));
  }
  SUBCASE("as a text that is a key") {
    bounded(uses(p_text(std::string(1U << 20U, 'k')), "}(" + repeated(get(0) + "N", kUses) + "u"));
  }
  SUBCASE("as the key of a storage") {
    const std::string id = "(" + p_text("storage") + p_global("torch", "FloatStorage") + get(0) + "NK\1tQ";
    bounded(uses(p_text(std::string(1U << 20U, 'k')), repeated(id, 2000)));
  }
  SUBCASE("as the class of a storage") {
    bounded(
        uses(p_global("torch", std::string(4000, 's')), repeated("(" + p_text("storage") + get(0) + "NNK\1tQ", 2000)));
  }
  SUBCASE("as the type of an array of numpy") {
    const std::string dtype = p_call(p_global("numpy", "dtype"), {p_text(std::string(1U << 20U, '1'))}) + put(0);
    const std::string array = p_global("numpy.core.multiarray", "_reconstruct") + ")R" +
                              p_tuple({p_small(1), p_numbers({1}), get(0), "\x88", "C\1x"}) + "b";
    bounded("(" + dtype + repeated(array, 2000) + "t");
  }
  SUBCASE("as the pairs of an OrderedDict of Python 2") {
    const std::string pairs = "(" + repeated("N", kLarge) + "l" + put(0) + "0";
    why_opaque(torch_archive(p_global("collections", "OrderedDict") + put(1) + "0(" + pairs +
                             repeated(get(1) + get(0) + "\x85R", kUses) + "t"));
  }
}

TEST_CASE("torch: calls within one another do not each copy their arguments") {
  // A list has 200 calls, and the list is the arguments of each call.
  constexpr unsigned kLarge = 200'000;
  std::string value =
      "]" + put(0) + "(" + repeated(p_global("m", "f") + get(0) + "R", 200) + repeated("N", kLarge) + "e";
  const std::string bytes = torch_archive(value);
  reset_allocations();
  parsed_torch(bytes);
  CHECK(allocations().total <= (64U << 20U) + 128 * bytes.size());
}

TEST_CASE("torch: a search takes a bounded number of steps") {
  // A list that is used 16 times by each of 16 lists, and so on.
  std::string value = "(" + repeated("N", 15) + "l" + put(0);
  for (unsigned i = 1; i < 30; ++i) value += "(" + repeated(get(i - 1), 16) + "l" + put(i);
  CHECK(why_opaque(torch_archive(value)) == "pickle: its values are shared too often");
  // Twice the same tensors are two names of each.
  const Layout twice = bounded("(" + p_dict({{"w", kTensor}}) + put(0) + get(0) + "t");
  CHECK(names_of(twice) == std::vector<std::string>{"0.w", "1.w"});
}

TEST_CASE("torch: long names of many tensors are bounded") {
  // One tensor, used 30,000 times below a key of 4,000 bytes.
  const std::string value =
      kTensor + put(0) + "0" +
      p_dict({{std::string(4000, 'k'), "(" + repeated(get(0), 30'000) + "l" + repeated("N0", 40'000)}});
  const std::string why = why_opaque(torch_archive(value));
  CHECK(why == "expected names of tensors of at most 67108864 bytes, got more");
}

TEST_CASE("torch: the value of an expanded tensor is bounded") {
  const std::string rebuild = p_global("torch._utils", "_rebuild_tensor_v2");
  const auto expanded = [&](std::uint64_t count) {
    return torch_archive(
        p_call(rebuild, {p_storage("0"), p_small(0), p_tuple({p_int(count)}), p_numbers({0}), "\x89", "N"}));
  };
  const Layout allowed = parsed_torch(expanded(1U << 28U));
  REQUIRE(allowed.tensors.size() == 1);
  CHECK(range_of(allowed.tensors[0]).length == 4);
  const Layout claimed = parsed_torch(expanded((1U << 28U) + 1));
  REQUIRE(claimed.hidden.size() == 1);
  CHECK(claimed.hidden[0].why == "its 1073741828 bytes repeat a storage of 96");
  CHECK(claimed.hidden[0].bytes == 96);
  CHECK(parsed_torch(expanded(1ULL << 59U)).hidden.size() == 1);
}

TEST_CASE("torch: lists that grow by turns take a bounded number of chunks") {
  const unsigned rounds = 100;
  std::string value = "]" + put(0) + "]" + put(1);
  for (unsigned i = 0; i < rounds; ++i) value += get(0) + "Na0" + get(1) + kTensor + "a0";
  const Layout layout = bounded(value);
  CHECK(layout.tensors.size() == rounds);
}
