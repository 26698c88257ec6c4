// Checks of a draft before a publish.
#include "drafts/draft_check.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "os/sys.h"
#include "unit/drafts/drafts.h"

namespace weft {
namespace {

using namespace testing;

// A pickle of the metadata of a checkpoint, in opcodes of protocol 2. It places one byte in each file.
std::string checkpoint_metadata(const std::vector<std::string>& files) {
  const auto text = [](const std::string& value) {
    return std::string("X") + static_cast<char>(value.size()) + std::string(3, '\0') + value;
  };
  const auto object = [&](const std::string& attributes) { return "cm\nObject\n)\x81}(" + attributes + "ub"; };
  std::string stored = "}(";
  for (const std::string& file : files)
    stored += object(text("fqn") + text(file)) +
              object(text("relative_path") + text(file) + text("offset") + "K" + '\0' + text("length") + "K\1");
  return "\x80\2" + object(text("state_dict_metadata") + "}" + text("storage_data") + stored + "u") + ".";
}

Result<std::optional<DraftFacts>> check(const TempDir& dir, std::size_t files_max = 100) {
  const Fd draft = must(open_file(dir.path(), O_RDONLY | O_DIRECTORY));
  return check_draft(
      draft.get(),
      [] {
        return Status(Error{Errc::cancelled, "interrupted"});
      },
      files_max);
}

TEST_CASE("a draft has at most as many files as a version") {
  const TempDir dir;
  for (const char* name : {"a", "b", "deep/c"}) write_file(dir / name, "x");
  CHECK(check(dir, 4).ok());
  const auto checked = check(dir, 3);
  CHECK(code_of(checked) == Errc::invalid);
  CHECK(checked.error().message.ends_with(": expected at most 3 files and directories"));
}

TEST_CASE("a link must lead to a file of the draft") {
  const TempDir dir;
  write_file(dir / "deep/c", "x");
  std::filesystem::create_symlink("deep/c", dir / "link");
  CHECK(check(dir).ok());
  const auto refused = [&dir](const char* target) {
    std::filesystem::remove(dir / "link");
    std::filesystem::create_symlink(target, dir / "link");
    return code_of(check(dir)) == Errc::invalid;
  };
  for (const char* target : {"/etc/passwd", "../../etc/passwd", "deep", "nowhere"}) {
    CAPTURE(target);
    CHECK(refused(target));
  }
}

TEST_CASE("a file that is open for writing makes a draft busy") {
  const TempDir dir;
  write_file(dir / "deep/c", "x");
  const Fd writer = must(open_file(dir / "deep/c", O_WRONLY));
  const Fd draft = must(open_file(dir.path(), O_RDONLY | O_DIRECTORY));
  CHECK(code_of(check_not_written(draft.get(), false)) == Errc::busy);
  CHECK(code_of(check(dir)) == Errc::cancelled);  // check() cancels
}

TEST_CASE("a part of a distributed checkpoint is not a version") {
  const TempDir dir;
  write_file(dir / "run/__0_0.distcp", "x");
  CHECK(code_of(check(dir)) == Errc::invalid);
  write_file(dir / "run/.metadata", checkpoint_metadata({"__0_0.distcp", "__1_0.distcp"}));
  CHECK(check(dir).error().message.find("__1_0.distcp, which is not here") != std::string::npos);
  write_file(dir / "run/__1_0.distcp", "x");
  CHECK(check(dir).ok());
  write_file(dir / "run/.metadata", checkpoint_metadata({"__0_0.distcp", "../run/__1_0.distcp"}));
  CHECK(check(dir).error().message.find("../run/__1_0.distcp, which is not here") != std::string::npos);
}

TEST_CASE("a part of a distributed checkpoint has all bytes that .metadata places in it") {
  const TempDir dir;
  write_file(dir / "run/.metadata", checkpoint_metadata({"__0_0.distcp"}));
  write_file(dir / "run/__0_0.distcp", "");
  const auto checked = check(dir);
  CHECK(code_of(checked) == Errc::invalid);
  CHECK(checked.error().message == "run/.metadata: expected at least 1 bytes of its part __0_0.distcp, got 0");
  std::filesystem::remove(dir / "run/__0_0.distcp");
  std::filesystem::create_directory(dir / "run/__0_0.distcp");
  CHECK(code_of(check(dir)) == Errc::invalid);
  std::filesystem::remove(dir / "run/__0_0.distcp");
  write_file(dir / "part", "x");
  std::filesystem::create_symlink("../part", dir / "run/__0_0.distcp");
  CHECK(check(dir).ok());
  write_file(dir / "part", "");
  CHECK(code_of(check(dir)) == Errc::invalid);
}

TEST_CASE("without collectives, each rank has metadata of its own, and none is left out") {
  const TempDir dir;
  write_file(dir / "run/__0.metadata", checkpoint_metadata({"__0_0.distcp"}));
  write_file(dir / "run/__0_0.distcp", "x");
  CHECK(check(dir).ok());
  write_file(dir / "run/__1_0.distcp", "x");
  CHECK(check(dir).error().message.find("run/__1_0.distcp: a part of a distributed checkpoint without __1.metadata") ==
        0);
  write_file(dir / "run/__1.metadata", checkpoint_metadata({"__1_0.distcp", "__1_1.distcp"}));
  CHECK(check(dir).error().message.find("run/__1.metadata: names the part __1_1.distcp, which is not here") == 0);
  write_file(dir / "run/__1_1.distcp", "x");
  CHECK(check(dir).ok());
  write_file(dir / "run/__3.metadata", checkpoint_metadata({}));
  CHECK(check(dir).error().message.find("run/__3.metadata: a part of a distributed checkpoint without __2.metadata") ==
        0);
}

TEST_CASE("a .metadata that weft cannot read is a file like others") {
  const TempDir dir;
  write_file(dir / "run/.metadata", "names __0_0.distcp");
  CHECK(check(dir).ok());
  write_file(dir / "run/__0_0.distcp", "x");
  CHECK(check(dir).ok());
  std::string cut = checkpoint_metadata({"__0_0.distcp", "__1_0.distcp"});
  cut.pop_back();
  write_file(dir / "run/.metadata", cut);
  CHECK(check(dir).ok());
  std::filesystem::resize_file(dir / "run/.metadata", limits::kPickleMax + 1);
  CHECK(check(dir).ok());
}

TEST_CASE("PyTorch gives .metadata its name when it is whole, so a checkpoint without it is not finished") {
  const TempDir dir;
  write_file(dir / "run/__0_0.distcp", "x");
  write_file(dir / "run/.metadata.tmp", checkpoint_metadata({"__0_0.distcp"}));
  CHECK(check(dir).error().message.find("run/__0_0.distcp: a part of a distributed checkpoint without .metadata") == 0);
  std::filesystem::rename(dir / "run/.metadata.tmp", dir / "run/.metadata");
  CHECK(check(dir).ok());
}

}  // namespace
}  // namespace weft
