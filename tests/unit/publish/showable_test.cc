#include "publish/showable.h"

#include <doctest/doctest.h>

#include "base/limits.h"
#include "testing.h"

using namespace weft;

namespace {

File with_tensors(const std::vector<std::string>& names) {
  File file;
  file.path = "m.pt";
  file.format = "torch zip";
  file.metadata = {{std::string(kGlobals), "os.system a.b"}, {std::string(kOtherGlobals), "os.system"}, {"other", "x"}};
  for (const std::string& name : names) file.tensors.push_back({name, DType::f32, {2, 3}, kNoExtent, ""});
  return file;
}

}  // namespace

TEST_CASE("a tensor whose name is too long for a tree is hidden, and the others are shown") {
  const std::string lengthy(252, 'n'), container = std::string(248, 'l') + ".x", slashes(84, '/');
  File file = with_tensors({"a", lengthy, container, slashes, std::string(251, 'n')});
  hide_unshowable(file);
  REQUIRE(file.tensors.size() == 2);
  CHECK(file.tensors[0].name == "a");
  CHECK(file.tensors[1].name == std::string(251, 'n'));
  CHECK(file.format == "torch zip");
  CHECK(file.metadata.size() == 3);
  REQUIRE(file.hidden.size() == 3);
  CHECK(file.hidden[0].name == lengthy);
  CHECK(file.hidden[0].why.find("at most 255 bytes, got 256") != std::string::npos);
  CHECK(file.hidden[0].dtype == DType::f32);
  CHECK(file.hidden[0].bytes == 24);
  CHECK(file.hidden[1].why.find("its container's name would have 260 bytes") != std::string::npos);
  CHECK(file.hidden[2].name == slashes);
}

TEST_CASE("a file without a tensor that a tree can show gets the reason, and its globals stay") {
  File file = with_tensors({std::string(252, 'n')});
  hide_unshowable(file);
  CHECK(file.tensors.empty());
  CHECK(file.hidden.empty());
  CHECK(file.format.empty());
  CHECK(why_no_tensors(file).find("at most 255 bytes, got 256") != std::string::npos);
  CHECK(globals_of(file, kGlobals) == "os.system a.b");
  CHECK(globals_of(file, kOtherGlobals) == "os.system");
  CHECK(file.metadata.size() == 3);
}

TEST_CASE("tensors that are hidden for their names are listed up to a bound") {
  std::vector<std::string> names = {"a"};
  for (std::size_t i = 0; i < limits::kHiddenTensorsMax + 3; ++i)
    names.push_back(std::string(300, 'n') + std::to_string(i));
  File file = with_tensors(names);
  hide_unshowable(file);
  CHECK(file.tensors.size() == 1);
  CHECK(file.hidden.size() == limits::kHiddenTensorsMax);
  CHECK(file.hidden_more == 3);
}

TEST_CASE("files whose tensors a tree can show stay as they are") {
  for (File file : {with_tensors({"a", "b.c"}), with_tensors({})}) {
    const File before = file;
    hide_unshowable(file);
    CHECK(file == before);
  }
}
