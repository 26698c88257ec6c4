// What Vfs::changes() tells, against what a whole walk sees.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fakes/node_fixture.h"
#include "weft/gc.h"
#include "weft/vfs.h"

namespace weft::testing {
namespace {

// All that a walk sees and that may change: attributes by inode.
using Seen = std::map<Ino, std::string>;

std::string text_of(const Attr& attr) {
  return std::to_string(attr.nlink) + " links, " + std::to_string(attr.blocks) + " blocks, " +
         std::to_string(attr.size) + " bytes, " + std::to_string(attr.mtime_ns);
}

void see(Vfs& vfs, Ino dir, Seen& seen) {
  for (const DirEntry& entry : must(vfs.list(dir))) {
    const Attr attr = must(vfs.lookup(dir, entry.name));
    if (attr.told) seen[attr.ino] = text_of(attr);
    if (attr.type == FileType::directory) see(vfs, attr.ino, seen);
  }
}

Seen see(Vfs& vfs) {
  Seen seen;
  see(vfs, kModelsIno, seen);
  return seen;
}

// Of all commits between two positions.
std::set<Ino> told(Vfs& vfs, std::uint64_t from, std::uint64_t to) {
  std::set<Ino> all;
  must(vfs.changes(from, to, [&](const std::vector<Ino>& changed) { all.insert(changed.begin(), changed.end()); }));
  return all;
}

void check_told(const Seen& before, const Seen& after, const std::set<Ino>& changed) {
  for (const auto& was : before) {  // one name: a lambda, as of CAPTURE, cannot have a part of a binding
    const auto now = after.find(was.first);
    if (now == after.end() || now->second == was.second) continue;
    CAPTURE(was.first);
    CAPTURE(was.second);
    CAPTURE(now->second);
    CHECK(changed.contains(was.first));
  }
}

// Models whose files share tensors from a small set.
class RandomStore : public Fixture {
 public:
  explicit RandomStore(std::uint64_t seed) : vfs(Vfs::make(*store, {})), random_(seed) {}

  std::string step() {
    const std::string model = pick({"m", "org/a", "org/b", "org/deep/c"});
    switch (number(6)) {
      case 0:
        return remove(model);
      case 1:
        return tag(model);
      default:
        return publish_random(model);
    }
  }

  std::unique_ptr<Vfs> vfs;

 private:
  std::uint64_t number(std::uint64_t below) { return random_() % below; }
  std::string pick(const std::vector<std::string>& words) { return words[number(words.size())]; }

  std::string publish_random(const std::string& model) {
    const std::string source = dir / ("source" + std::to_string(sources_++));
    for (std::uint64_t file = 0; file <= number(2); ++file) {
      std::vector<NamedTensor> tensors;
      for (std::uint64_t i = 0; i <= number(4); ++i)
        tensors.push_back({"layer." + std::to_string(i) + ".weight", "F32", {256}, random_bytes(1024, number(6))});
      write_file(source + "/f" + std::to_string(file) + ".safetensors", safetensors_file(tensors));
    }
    ImportOptions options;
    options.paths = {source};
    options.name = model;
    if (number(2) == 0) options.tags = {pick({"red", "green"})};
    must(import_paths(*store, options, no_progress()));
    return "publish " + model;
  }

  std::uint64_t newest(const std::string& model) {
    const auto row = must(store->snapshot())->model(model);
    return row.ok() ? row->next_number : 1;
  }
  std::string remove(const std::string& model) {
    const std::uint64_t version = number(newest(model)) + 1;
    static_cast<void>(store->remove_version(model, version));  // it may not be there
    return "remove " + model + "@" + std::to_string(version);
  }
  std::string tag(const std::string& model) {
    const std::uint64_t version = number(newest(model));
    const std::string name = pick({"red", "green"});
    static_cast<void>(store->set_tag(model, name, version == 0 ? std::nullopt : std::optional(version)));
    return "tag " + model + "@" + std::to_string(version) + " " + name;
  }

  std::mt19937_64 random_;
  std::uint64_t sources_ = 0;
};

}  // namespace

TEST_CASE("whatever a commit changes is told") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  RandomStore f(seed);
  Seen before = see(*f.vfs);
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t from = must(f.vfs->position());
    const std::string step = f.step();
    CAPTURE(step);
    Seen after = see(*f.vfs);
    check_told(before, after, told(*f.vfs, from, must(f.vfs->position())));
    before = std::move(after);
  }
}

TEST_CASE("also when many commits were missed, and gc came between") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  RandomStore f(seed);
  for (int round = 0; round < 6; ++round) {
    const Seen before = see(*f.vfs);
    const std::uint64_t from = must(f.vfs->position());
    for (int i = 0; i < 10; ++i) CAPTURE(f.step());
    must(f.store->gc({}, no_progress()));
    const auto fresh = Vfs::make(*f.store, {});  // as after a restart: nothing is remembered
    check_told(before, see(*fresh), told(*fresh, from, must(fresh->position())));
  }
}

TEST_CASE("a commit tells of nothing that it leaves alone") {
  Fixture f;
  write_model(f.dir / "one", 1);
  write_file(f.dir / "two/model.safetensors",
             safetensors_file({{"other", "F32", {64, 64}, random_bytes(16384, 5000)}}));
  f.publish({f.dir / "one"}, "m");
  const auto vfs = Vfs::make(*f.store, {});
  const std::uint64_t from = must(vfs->position());
  f.publish({f.dir / "two"}, "n");
  CHECK(told(*vfs, from, must(vfs->position())).size() == 2);  // models/n, models/n/latest
}

}  // namespace weft::testing
