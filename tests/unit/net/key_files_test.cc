#include "net/session/key_files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "net/session/cluster_keys.h"
#include "testing.h"

namespace weft::net {
namespace {

struct Files {
  Files() {
    testing::write_file(file, first.key);
    REQUIRE(::chmod(file.c_str(), 0600) == 0);
  }
  KeyState state() const { return testing::must(read_key_state(file)); }
  Status step(KeyStep step, const std::string& name) const { return change_key_files(file, {step, name}); }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    const KeyRing ring = testing::must(read_key_ring(file));
    for (const ClusterKey& key : ring.keys()) out.push_back(key.name());
    return out;
  }
  bool has(const std::string& suffix) const { return std::filesystem::exists(file + suffix); }

  testing::TempDir dir;
  const std::string file = dir / "key";
  const KeyOrder first = new_key_order();
};

TEST_CASE("a node accepts, uses and forgets, each step once or twice") {
  const Files files;
  const KeyOrder next = new_key_order();
  CHECK(files.state().proving == files.first.name);
  for (int i = 0; i < 2; ++i) REQUIRE(change_key_files(files.file, next).ok());
  CHECK(files.state().next == next.name);
  CHECK(files.names() == std::vector{files.first.name, next.name});
  CHECK(testing::must(read_key_order(files.file, next.name)) == next);
  struct stat st {};
  REQUIRE(::stat((files.file + ".next").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777U) == 0600U);
  for (int i = 0; i < 2; ++i) REQUIRE(files.step(KeyStep::use, next.name).ok());
  CHECK(files.names() == std::vector{next.name, files.first.name});
  CHECK(files.state().previous == files.first.name);
  REQUIRE(change_key_files(files.file, next).ok());  // accepts it already
  CHECK(testing::must(read_key_order(files.file, next.name)) == next);
  for (int i = 0; i < 2; ++i) REQUIRE(files.step(KeyStep::forget, files.first.name).ok());
  CHECK(files.names() == std::vector{next.name});
  CHECK(!files.has(".next"));
  CHECK(!files.has(".previous"));
}

TEST_CASE("a step that was interrupted between its files is done again") {
  const Files files;
  const KeyOrder next = new_key_order();
  testing::write_file(files.file + ".next.new", "half");
  REQUIRE(change_key_files(files.file, next).ok());
  CHECK(!files.has(".next.new"));
  std::filesystem::create_hard_link(files.file, files.file + ".previous");
  CHECK(files.state().previous.empty());
  CHECK(files.state().next == next.name);
  REQUIRE(files.step(KeyStep::use, next.name).ok());
  CHECK(files.names() == std::vector{next.name, files.first.name});
}

TEST_CASE("a new key that was not used is forgotten") {
  const Files files;
  const KeyOrder next = new_key_order();
  REQUIRE(change_key_files(files.file, next).ok());
  REQUIRE(files.step(KeyStep::forget, next.name).ok());
  CHECK(files.names() == std::vector{files.first.name});
  CHECK(!files.has(".next"));
}

TEST_CASE("orders that do not fit to the keys of a node change nothing") {
  const Files files;
  const KeyOrder next = new_key_order();
  const KeyOrder third = new_key_order();
  CHECK(files.step(KeyStep::use, next.name).error().code == Errc::not_found);
  CHECK(files.step(KeyStep::forget, files.first.name).error().code == Errc::invalid);
  CHECK(change_key_files(files.file, {KeyStep::accept, next.name, third.key}).error().code == Errc::invalid);
  CHECK(change_key_files(files.file, {KeyStep::accept, next.name, "short"}).error().code == Errc::invalid);
  CHECK(!files.has(".next"));
  REQUIRE(change_key_files(files.file, next).ok());
  CHECK(change_key_files(files.file, third).error().code == Errc::exists);
  REQUIRE(files.step(KeyStep::use, next.name).ok());
  CHECK(change_key_files(files.file, third).error().code == Errc::exists);
  CHECK(files.step(KeyStep::forget, third.name).ok());  // it has no such key
  CHECK(files.names() == std::vector{next.name, files.first.name});
}

TEST_CASE("a node knows the key that it has made for a change, until the change ends") {
  const Files files;
  const KeyOrder next = new_key_order();
  CHECK(files.state().changing().empty());
  REQUIRE(note_made_key(files.file, next.name).ok());
  REQUIRE(change_key_files(files.file, next).ok());
  CHECK(files.state().changing() == next.name);
  CHECK(files.state().made == next.name);
  REQUIRE(files.step(KeyStep::use, next.name).ok());
  CHECK(files.state().changing() == next.name);
  CHECK(files.state().made == next.name);
  REQUIRE(files.step(KeyStep::forget, files.first.name).ok());
  CHECK(files.state().changing().empty());
  CHECK(!files.has(".made"));
  const KeyOrder others = new_key_order();
  REQUIRE(change_key_files(files.file, others).ok());  // ordered by a node that holds the old key
  CHECK(files.state().changing() == others.name);
  CHECK(files.state().made.empty());
}

TEST_CASE("a record of a made key that others can write is refused") {
  const Files files;
  REQUIRE(note_made_key(files.file, new_key_order().name).ok());
  REQUIRE(::chmod((files.file + ".made").c_str(), 0644) == 0);
  CHECK(read_key_state(files.file).error().code == Errc::permission);
  REQUIRE(::chmod((files.file + ".made").c_str(), 0600) == 0);
  testing::write_file(files.file + ".made", "no name");
  CHECK(files.state().made.empty());
}

}  // namespace
}  // namespace weft::net
