// Moves versions between two stores.
#include <doctest/doctest.h>

#include <algorithm>

#include "os/sys.h"
#include "two_sites.h"

namespace weft::testing {
namespace {

namespace fs = std::filesystem;

BundleOptions all() {
  BundleOptions options;
  options.all = true;
  return options;
}

BundleOptions of(std::vector<std::string> specs) {
  BundleOptions options;
  options.specs = std::move(specs);
  return options;
}

void check_same_version(const VersionRow& a, const VersionRow& b) {
  CHECK(a.model_name == b.model_name);
  CHECK(a.number == b.number);
  CHECK(a.manifest == b.manifest);
  CHECK(a.time_ns == b.time_ns);
  CHECK(a.message == b.message);
  CHECK(a.metrics == b.metrics);
  CHECK(a.tensors == b.tensors);
  CHECK(a.tensor_bytes == b.tensor_bytes);
  CHECK(a.logical_bytes == b.logical_bytes);
  REQUIRE(a.parents.size() == b.parents.size());
  for (std::size_t i = 0; i < a.parents.size(); ++i) {
    CHECK(a.parents[i].model == b.parents[i].model);
    CHECK(a.parents[i].number == b.parents[i].number);
    CHECK(a.parents[i].same_bytes == b.parents[i].same_bytes);
  }
}

TEST_CASE("a store is the same after its backup is imported, from a file and from a directory") {
  for (const bool directory : {false, true}) {
    TwoSites s;
    must(s.from.store->describe("bert", 1, {"said later", {{"f1", "0.5"}}}));
    BundleOptions options = all();
    options.directory = directory;
    const auto report = must(s.import(s.created(options)));
    CHECK(report.versions == 3);
    CHECK(report.imported == 3);
    CHECK(report.tags == 2);
    CHECK(report.left.empty());
    for (const std::string spec : {"bert@1", "bert@2", "org/other@1"}) {
      check_same_version(must(s.from.resolve(spec)), must(s.to.resolve(spec)));
      CHECK(TwoSites::exported(s.from, spec) == TwoSites::exported(s.to, spec));
    }
    CHECK(must(s.to.resolve("bert@prod")).number == 2);
    CHECK(must(s.to.resolve("org/other@best")).number == 1);
    CHECK(must(s.to.resolve("org/other@1")).parents[0].id == must(s.to.resolve("bert@2")).id);
    s.check_sound();
    s.version("bert", 9, {});  // on the first site
    CHECK(s.to.publish({s.from.dir / "source9"}, "bert").outcome.version.number == 3);
  }
}

TEST_CASE("a second import passes known versions over") {
  TwoSites s;
  const std::string path = s.created(all());
  must(s.import(path));
  const std::string before = s.to.state();
  const auto again = must(s.import(path));
  CHECK(again.imported == 0);
  CHECK(again.known == 3);
  CHECK(again.tags == 0);
  CHECK(s.to.state() == before);
}

TEST_CASE("a version alone brings its inherited bytes, and its parent stays a name") {
  TwoSites s;
  const auto report = must(s.import(s.created(of({"org/other"}))));
  CHECK(report.imported == 1);
  CHECK(TwoSites::exported(s.from, "org/other@1") == TwoSites::exported(s.to, "org/other@1"));
  const VersionRow row = must(s.to.resolve("org/other@1"));
  REQUIRE(row.parents.size() == 1);
  CHECK(spec_of(row.parents[0].model, row.parents[0].number) == "bert@2");
  CHECK(row.parents[0].id == 0);
  CHECK_FALSE(s.to.resolve("bert").ok());
  s.check_sound();
  must(s.import(s.created(of({"bert@2"}), "parent.weft")));
  CHECK(must(s.to.resolve("bert@2")).number == 2);
  CHECK(must(s.to.resolve("bert@2")).uid == must(s.from.resolve("bert@2")).uid);
  must(s.import(s.created(of({"bert@1"}), "first.weft")));  // a smaller number comes later
  CHECK(must(s.to.resolve("bert")).number == 2);
  CHECK(TwoSites::exported(s.from, "bert@1") == TwoSites::exported(s.to, "bert@1"));
  s.check_sound();
}

TEST_CASE("an import chooses versions of a bundle, which hold blobs of others") {
  TwoSites s;
  const std::string path = s.created(all());
  BundleImportOptions options;
  options.specs = {"bert@prod"};
  CHECK(must(s.import(path, options)).imported == 1);
  CHECK(TwoSites::exported(s.from, "bert@2") == TwoSites::exported(s.to, "bert@2"));
  CHECK_FALSE(s.to.resolve("bert@1").ok());
  options.specs = {"bert@7"};
  CHECK(s.import(path, options).error().code == Errc::not_found);
  s.check_sound();
}

TEST_CASE("another content under one name is refused before anything is written") {
  TwoSites s;
  const std::string path = s.created(all());
  write_model(s.to.dir / "mine", 77);
  s.to.publish({s.to.dir / "mine"}, "bert");
  const std::string before = s.to.state();
  const auto refused = s.import(path);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Errc::exists);
  CHECK(refused.error().message.find("bert@1") != std::string::npos);
  CHECK(s.to.state() == before);
}

TEST_CASE("a tag that leads elsewhere moves only on demand") {
  TwoSites s;
  const std::string path = s.created(all());
  must(s.import(path));
  must(s.to.store->set_tag("bert", "prod", 1));
  const auto kept = must(s.import(path));
  CHECK(kept.tags == 0);
  REQUIRE(kept.left.size() == 1);
  CHECK(kept.left[0].find("bert@prod") != std::string::npos);
  CHECK(must(s.to.resolve("bert@prod")).number == 1);
  BundleImportOptions options;
  options.move_tags = true;
  CHECK(must(s.import(path, options)).tags == 1);
  CHECK(must(s.to.resolve("bert@prod")).number == 2);
}

TEST_CASE("a dry run verifies and changes nothing") {
  TwoSites s;
  const std::string path = s.created(all());
  const std::string before = s.to.state();
  BundleImportOptions options;
  options.dry_run = true;
  const auto report = must(s.import(path, options));
  CHECK(report.imported == 3);
  CHECK(report.tags == 2);
  CHECK(report.bytes > 0);
  CHECK(s.to.state() == before);
}

TEST_CASE("--since leaves out bytes of an earlier bundle, which the store needs first") {
  TwoSites s;
  const std::string first = s.created(of({"bert@1"}), "first.weft");
  BundleOptions options = all();
  options.since = first;
  const std::string second = s.created(options, "second.weft");
  const std::string whole = s.created(all(), "whole.weft");
  CHECK(fs::file_size(second) + 10'000 < fs::file_size(whole));
  const auto alone = s.import(second);
  REQUIRE_FALSE(alone.ok());
  CHECK(alone.error().code == Errc::absent);
  CHECK(alone.error().message.find(must(read_bundle_list(must(bundle_at(first))))->uuid) != std::string::npos);
  must(s.import(first));
  CHECK(must(s.import(second)).imported == 2);
  CHECK(TwoSites::exported(s.from, "org/other@1") == TwoSites::exported(s.to, "org/other@1"));
  s.check_sound();
}

TEST_CASE("--tags takes the versions that have a tag") {
  TwoSites s;
  BundleOptions options;
  options.tagged = true;
  const auto list = must(read_bundle_list(must(bundle_at(s.created(options)))));
  CHECK(list->versions.size() == 2);
  CHECK(list->tags.size() == 2);
}

TEST_CASE("a backup keeps the numbers of removed versions") {
  TwoSites s;
  const std::string earlier = s.created(all(), "earlier.weft");
  must(s.from.store->remove_version("bert", 2));
  const std::string path = s.created(all());
  const auto report = must(s.import(path));
  CHECK(report.versions == 2);
  CHECK(report.removed == 1);
  CHECK_FALSE(s.to.resolve("bert@2").ok());
  const auto snapshot = must(s.to.store->snapshot());
  const VersionRow parent = must(snapshot->version(must(snapshot->model("bert")).id, 2));
  CHECK(parent.removed);
  CHECK(must(s.to.resolve("org/other@1")).parents[0].id == parent.id);
  CHECK(must(s.import(path)).removed == 0);
  CHECK(must(s.import(earlier)).left.size() == 1);  // not brought back
  s.check_sound();
  write_model(s.to.dir / "next", 9);
  CHECK(s.to.publish({s.to.dir / "next"}, "bert").outcome.version.number == 3);
  TwoSites other;
  must(other.import(earlier));
  CHECK(must(other.import(path)).left.size() == 1);
  CHECK(must(other.to.resolve("bert@2")).number == 2);
}

TEST_CASE("a bundle appears complete or not at all, and replaces nothing") {
  TwoSites s;
  HookProgress progress;
  progress.on_phase = [&](std::string_view what) { progress.cancel = what == "writing the bundle"; };
  for (const bool directory : {false, true}) {
    BundleOptions options = all();
    options.directory = directory;
    progress.cancel = false;
    CHECK(s.create(options, s.file(), progress).error().code == Errc::cancelled);
    CHECK(fs::is_empty(s.place.path()));
  }
  // The next process takes over what a killed one has left.
  write_file(s.place / ".bundle.weft.partial", "left");
  s.created(all());
  CHECK(must(s.import(s.file())).imported == 3);
  CHECK(s.create(all(), s.file()).error().code == Errc::exists);
  fs::create_directories(s.place / ".d.partial/blobs");
  write_file(s.place / ".d.partial/blobs/0", "left");
  BundleOptions options = all();
  options.directory = true;
  must(s.create(options, s.place / "d"));
  CHECK(must(s.import(s.place / "d")).known == 3);
}

TEST_CASE("damage to stored bytes makes no bundle") {
  TwoSites s;
  for (const auto& entry : fs::directory_iterator(s.from.dir / "store/packs")) {
    if (entry.path().extension() != ".pack" || entry.file_size() == 0) continue;
    std::string bytes = read_text(entry.path());
    for (char& byte : bytes) byte = static_cast<char>(byte ^ 1);
    write_file(entry.path(), bytes);
  }
  CHECK(s.create(all(), s.file()).error().code == Errc::corrupt);
  CHECK_FALSE(fs::exists(s.file()));
}

TEST_CASE("a cancelled import leaves whole versions, and the next one continues") {
  TwoSites s;
  const std::string path = s.created(all());
  HookProgress progress;
  progress.on_phase = [&](std::string_view what) { progress.cancel = what == "publishing"; };
  const std::string before = s.to.state();
  CHECK(s.import(path, {}, progress).error().code == Errc::cancelled);
  CHECK(s.to.state() == before);
  CHECK(fs::is_empty(s.to.dir / "store/tmp"));
  CHECK(must(s.import(path)).imported == 3);
  s.check_sound();
}

}  // namespace
}  // namespace weft::testing
