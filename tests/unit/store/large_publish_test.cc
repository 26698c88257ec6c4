#include "store/publishing/large_publish.h"

#include <doctest/doctest.h>

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/sha256.h"
#include "parts_support.h"
#include "repair/rebuild.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr PackId kPack = 0x77;  // no test reads its bytes

PublishRequest request_of(const Files& files) {
  PublishRequest request;
  request.model = "large";
  request.manifest = manifest_of(files);
  request.content = make_content(files);
  return request;
}

struct Room : TestParts {
  explicit Room(CommitHooks hooks = {}) : TestParts({}, std::move(hooks)) {}
  // Takes content as a publish does, and ends before the commit.
  Result<std::optional<TakenContent>> take(const PublishRequest& request, std::span<const NewBlob> brought = {}) {
    const Digest manifest = sha256(request.manifest);
    Placed placed{must(parts->index.lock()), brought};
    must(parts->manifests.put(manifest, request.manifest));
    new_bytes = 0;
    auto taken = take_content(*parts, request, manifest, placed, new_bytes);
    if (taken.ok()) CHECK(placed.lock.has_value());
    return taken;
  }
  std::optional<UnderWay> under_way() const {
    Txn txn = must(parts->index.read());
    return must(find_under_way(txn));
  }
  bool is_held(unsigned content) const { return must(must(parts->blobs.read())->is_held(content_id(content))); }
  bool has_model(std::string_view model) const {
    Txn txn = must(parts->index.read());
    return must(find_model(txn, model)).has_value();
  }

  std::uint64_t new_bytes = 0;
};

}  // namespace

TEST_CASE("a large publish takes its content in parts, between which others commit, and shows nothing") {
  Room* taking = nullptr;
  int parts = 0;
  CommitHooks hooks;
  hooks.after_part = [&] {
    if (++parts == 1) must(publish(*taking->parts, "beside", {{4}}));
  };
  Room room(hooks);
  taking = &room;
  must(publish(*room.parts, "small", {{1, 2}}));
  const NewBlob fresh{content_id(3), {kPack, 0}};
  const auto taken = must(room.take(request_of({{1, 2}, {3}}), {&fresh, 1}));
  REQUIRE(taken.has_value());
  CHECK(parts == 2);
  CHECK(room.new_bytes == content_id(3).length);
  CHECK(room.version("beside", 1).number == 1);
  const auto under_way = room.under_way();
  REQUIRE(under_way.has_value());
  CHECK(under_way->version.id == taken->version);
  CHECK(under_way->steps == 3 + 2 + 3);  // views, files, blobs
  CHECK_FALSE(room.has_model("large"));
  CHECK(room.is_held(3));
}

TEST_CASE("a large publish of the newest version's content takes nothing, and neither does a refused one") {
  Room room;
  must(publish(*room.parts, "large", {{1, 2}}));
  CHECK_FALSE(must(room.take(request_of({{1, 2}}))).has_value());
  PublishRequest orphan = request_of({{1}});
  orphan.parents = {{"none", 1}};
  CHECK(room.take(orphan).error().code == Errc::not_found);
  CHECK(room.new_bytes == 0);
  CHECK_FALSE(room.under_way().has_value());
  CHECK(must(left_attaching(*room.parts)).empty());
}

TEST_CASE("fsck names a large publish that ended before its commit, and undoes its parts if it may write") {
  Room room;
  must(publish(*room.parts, "small", {{1, 2}}));
  const NewBlob fresh{content_id(3), {kPack, 0}};
  must(room.take(request_of({{1, 2}, {3}}), {&fresh, 1}));
  CHECK(must(left_attaching(*room.parts)).find("a publish of large ended before its commit") != std::string::npos);
  OpenOptions options = write_options();
  options.write = false;
  must(give_up_left(*must(StoreParts::open(safe(room.made.path), options)), no_progress()));
  CHECK(room.under_way().has_value());
  must(give_up_left(*room.parts, no_progress()));
  CHECK_FALSE(room.under_way().has_value());
  CHECK(must(left_attaching(*room.parts)).empty());
  CHECK_FALSE(room.is_held(3));
  CHECK(room.is_held(1));
}

TEST_CASE("the next large publish undoes the parts of a dead one, and keeps collectors out") {
  Room room;
  must(publish(*room.parts, "small", {{1, 2}}));
  must(room.take(request_of({{1, 2}})));
  Patience none;
  none.cancelled = [] { return true; };
  const auto lock = [&](LockKind kind) { return lock_collector(room.parts->path, kind, none); };
  Fd attaching = must(lock_for_attaching(*room.parts));
  CHECK_FALSE(room.under_way().has_value());
  CHECK(lock(LockKind::exclusive).error().code == Errc::cancelled);  // gc, and another large publish
  CHECK(lock(LockKind::shared).error().code == Errc::cancelled);     // fsck
  CHECK(must(room.take(request_of({{1, 2}}))).has_value());
  attaching.reset();
  CHECK(lock(LockKind::exclusive).ok());
}

TEST_CASE("an undo that was cancelled continues at the next call, and content that others share meanwhile stays") {
  constexpr unsigned kMany = limits::kBatchRows + 100;
  std::vector<unsigned> contents;
  std::vector<NewBlob> brought;
  for (unsigned n = 0; n < kMany; ++n) {
    contents.push_back(n);
    brought.push_back({content_id(n), {kPack, 10'000ULL * n}});
  }
  Room room;
  must(room.take(request_of({contents}), brought));
  const std::uint64_t steps = 2ULL * kMany + 1;
  REQUIRE(room.under_way().has_value());
  CHECK(room.under_way()->steps == steps);
  SilentProgress soon([left = 1]() mutable { return left-- <= 0; });
  CHECK(abandon_attach(*room.parts, soon).error().code == Errc::cancelled);
  REQUIRE(room.under_way().has_value());
  CHECK(room.under_way()->steps == steps - limits::kBatchRows);
  must(publish(*room.parts, "beside", {{0, 1, kMany - 1}}));
  must(abandon_attach(*room.parts, no_progress()));
  CHECK_FALSE(room.under_way().has_value());
  for (const unsigned content : {0U, 1U, kMany - 1}) CHECK(room.is_held(content));
  for (const unsigned content : {2U, kMany - 2}) CHECK_FALSE(room.is_held(content));
}
