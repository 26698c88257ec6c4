// Models of ONNX with external data: elements in files beside the model.
#include <doctest/doctest.h>

#include "builders.h"
#include "memory_group.h"
#include "protobufs.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr unsigned kFloat = 1, kInt4 = 22;

// A group that notes what a format asks for.
class NotedGroup final : public FormatInput {
 public:
  explicit NotedGroup(std::string_view model)
      : files_(
            "m.onnx", model,
            {{"m.data", std::string(100, 'd')}, {"sub/w.bin", std::string(8, 'w')}, {"big", std::string(5000, 'b')}}) {}
  std::string_view name() const override { return files_.name(); }
  ByteSource& main() override { return files_.main(); }
  Result<ByteSource*> beside(std::string_view path) override {
    asked_.emplace_back(path);
    return files_.beside(path);
  }
  const std::vector<std::string>& asked() const { return asked_; }

 private:
  MemoryGroup files_;
  std::vector<std::string> asked_;
};

std::string two_floats(std::string_view name, std::string_view location, std::string_view offset,
                       std::string_view length) {
  return onnx_tensor(name, kFloat, {2}) + onnx_external(location, offset, length);
}

Layout parse(const std::string& model) {
  NotedGroup group(model);
  auto layout = parse_file("dir/m.onnx", group);
  REQUIRE(layout.ok());
  CHECK(layout->format == "onnx");
  return *std::move(layout);
}

// Returns the reason why the only tensor of a model is hidden. `asked`: whether the format asked for a file.
std::string why_hidden(const std::string& tensor, bool asked) {
  NotedGroup group(onnx_with(tensor));
  const auto layout = parse_file("dir/m.onnx", group);
  REQUIRE(layout.ok());
  CHECK(layout->format == "onnx");
  CHECK(layout->tensors.empty());
  CHECK(group.asked().empty() == !asked);
  REQUIRE(layout->hidden.size() == 1);
  return layout->hidden[0].why;
}

}  // namespace

TEST_CASE("onnx: external data lies in files beside the model") {
  const Layout layout = parse(onnx_model(
      pb_bytes(5, two_floats("last", "m.data", "92", "8")) + pb_bytes(5, two_floats("other", "sub/w.bin", "", "")) +
      pb_bytes(5, onnx_raw("own", kFloat, {1}, "0123")) + pb_bytes(5, two_floats("first", "./m.data", "0", "")) +
      onnx_node("n", onnx_attribute("value", 5, two_floats("", "sub//./w.bin", "", "8")))));
  CHECK(layout.hidden.empty());
  CHECK(layout.others == std::vector<std::string>{"m.data", "sub/w.bin"});
  REQUIRE(layout.tensors.size() == 5);
  CHECK(layout.tensors[0].name == "own");
  CHECK(layout.tensors[0].parts[0].file == 0);
  CHECK(layout.tensors[1].name == "first");
  CHECK(layout.tensors[1].parts[0].file == 1);
  CHECK(range_of(layout.tensors[1]) == Range{0, 8});
  CHECK(layout.tensors[2].name == "last");
  CHECK(range_of(layout.tensors[2]) == Range{92, 8});
  CHECK(layout.tensors[3].parts[0].file == 2);
  CHECK(layout.tensors[4].parts[0].file == 2);
}

TEST_CASE("onnx: an empty external tensor has no part") {
  const Layout layout = parse(onnx_with(onnx_tensor("e", kFloat, {0}) + onnx_external("m.data", "100", "0")));
  REQUIRE(layout.tensors.size() == 1);
  CHECK(layout.tensors[0].parts.empty());
}

TEST_CASE("onnx: a path that leaves the directory of the model hides its tensor, and no file is opened") {
  for (const std::string location : {"../x", "/etc/passwd", "a/../../x", "sub/..", "..", "a\\..\\x", "C:\\x", "/"}) {
    CAPTURE(location);
    CHECK(why_hidden(two_floats("w", location, "", ""), false)
              .starts_with("expected a file below the model's directory, got "));
  }
  CHECK(why_hidden(two_floats("w", std::string("m.data\0x", 8), "", ""), false)
            .starts_with("expected a file below the model's directory, got "));
  CHECK(why_hidden(two_floats("w", "", "0", "8"), false) == "external data without a location");
  CHECK(why_hidden(two_floats("w", ".", "0", "8"), false) == "external data without a location");
}

TEST_CASE("onnx: external data that is missing or too short hides its tensor") {
  CHECK(why_hidden(two_floats("w", "none.data", "", ""), true) ==
        "its external data is in no file none.data of the version");
  CHECK(why_hidden(two_floats("w", "m.data", "93", ""), true) ==
        "expected 8 bytes at 93 of m.data, got a file of 100 bytes");
  CHECK(why_hidden(two_floats("w", "m.data", "101", "0"), true).starts_with("expected 0 bytes at 101"));
  CHECK(
      why_hidden(two_floats("w", "m.data", "18446744073709551615", ""), true).starts_with("expected 8 bytes at 1844"));
  CHECK(why_hidden(two_floats("w", "m.data", "0", "7"), true) == "expected 8 bytes for its shape [2], got 7");
  CHECK(why_hidden(two_floats("w", "m.data", "0", "9"), true) == "expected 8 bytes for its shape [2], got 9");
  for (const std::string_view bad : {"-8", "0x8", "8 ", "18446744073709551616", "eight"}) {
    CHECK(why_hidden(two_floats("w", "m.data", bad, ""), false) ==
          "expected a number as the offset of its external data, got other text");
    CHECK(why_hidden(two_floats("w", "m.data", "", bad), false) ==
          "expected a number as the length of its external data, got other text");
  }
  CHECK(why_hidden(two_floats("w", std::string(70'000, 'x'), "", ""), true)
            .starts_with("its external data is in no file"));
}

TEST_CASE("onnx: external data of a type that weft lacks is a cut of the other file") {
  const Layout layout = parse(onnx_with(onnx_tensor("w", kInt4, {10'000}) + onnx_external("big", "0", "5000")));
  CHECK(layout.tensors.empty());
  REQUIRE(layout.hidden.size() == 1);
  CHECK(layout.hidden[0].bytes == 5000);
  CHECK(layout.others == std::vector<std::string>{"big"});
  REQUIRE(layout.cuts.size() == 1);
  CHECK(layout.cuts[0].file == 1);
  CHECK(layout.cuts[0].length == 5000);
}

TEST_CASE("onnx: a model alone has no external data") {
  const Layout layout = good("m.onnx", onnx_with(two_floats("w", "m.data", "", "")));
  CHECK(layout.tensors.empty());
  CHECK(layout.hidden.size() == 1);
}
