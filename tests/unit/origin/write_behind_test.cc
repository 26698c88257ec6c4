// The journal of an origin gets each catalog event once, also after a restart. A hanging origin does not block the
// node.
#include "origin/write_behind.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>

#include "base/sha256.h"
#include "fakes/stepped_time.h"
#include "hanging_file.h"
#include "origin/dir.h"
#include "os/sys.h"
#include "testing.h"
#include "weft/cluster/origin.h"
#include "weft/programs/operations.h"
#include "weft/store/fsck.h"

namespace weft::testing {
namespace {

constexpr std::string_view kHere = "00000000-0000-4000-8000-000000000001";
constexpr std::string_view kElsewhere = "00000000-0000-4000-8000-000000000002";
constexpr std::string_view kCluster = "00000000-0000-4000-8000-00000000000a";

const auto kNever = [] { return false; };

MirroredVersion heard(std::string model, std::uint64_t number) {
  MirroredVersion change;
  change.version.model_name = std::move(model);
  change.version.number = number;
  change.version.uid = {std::hash<std::string>{}(change.version.model_name), number};
  change.version.manifest = sha256(as_bytes(std::to_string(number)));
  change.version.time_ns = 1000 + number;
  change.version.publisher = kElsewhere;
  change.tree_nodes = 1;
  return change;
}

MirroredVersion own(std::string model, std::uint64_t number) {
  MirroredVersion change = heard(std::move(model), number);
  change.version.publisher = kHere;
  return change;
}

MirroredVersion tombstone(MirroredVersion version, std::uint64_t removed_ns) {
  version.version.removed = true;
  version.version.removed_ns = removed_ns;
  return version;
}

struct Told {
  TempDir dir;
  std::string origin = dir / "origin";
  std::unique_ptr<ClusterStore> store;

  Told() {
    must(Store::create(dir / "store", {}));
    must(make_directory(origin));
    open();
    must(store->mirror().join({std::string(kCluster), std::string(kHere)}));
  }
  void open() {
    store.reset();
    OpenOptions options;
    options.decode = content_decoder();
    store = must(ClusterStore::open(dir / "store", options));
  }
  void hear(const std::vector<MirrorChange>& changes, std::uint64_t revision) const {
    CHECK(must(store->mirror().apply(changes, revision)).problems.empty());
  }
  std::vector<VersionId> unsaved() const { return must(must(store->snapshot())->unsaved(0, SIZE_MAX)); }
  // Writes all missing records, and returns their number.
  std::uint64_t tell() const {
    WriteBehind behind(*store, store->ledger(), origin);
    must(behind.wait(kNever));
    return behind.status().records_written;
  }
  Error refusal() const {
    WriteBehind behind(*store, store->ledger(), origin);
    const Status waited = behind.wait(kNever);
    REQUIRE(!waited.ok());
    return waited.error();
  }
  // Replaces the origin by an empty directory, as if its file system were not mounted.
  void put_away(const std::string& to) const {
    std::filesystem::rename(origin, to);
    must(make_directory(origin));
  }
  std::vector<std::string> records() const { return must(list_directory(origin + "/journal")); }
};

}  // namespace

TEST_CASE("versions, tags and removals of all nodes go to the origin's journal, each once") {
  Told told;
  told.hear({heard("a", 1), heard("a", 2), MirroredTag{"a", "best", 1, 50, 2}}, 3);
  told.hear({MirroredTag{"a", "best", 2, 60, 4}, MirroredTag{"a", "best", 0, 0, 5}, tombstone(heard("a", 1), 70)}, 6);
  CHECK(told.tell() == 6);
  const OriginDir origin = must(OriginDir::open(told.origin, kCluster));
  std::vector<std::pair<std::uint64_t, std::uint64_t>> tags;  // number, time
  std::size_t removed = 0;
  for (const std::string& name : told.records()) {
    const CatalogRecord record = must(origin.event(name));
    if (const auto* tag = std::get_if<MirroredTag>(&record.event)) {
      tags.emplace_back(tag->number, tag->time_ns);
      CHECK(record.cluster == kCluster);
    }
    if (const auto* removal = std::get_if<MirroredRemoval>(&record.event)) removed += removal->number;
  }
  CHECK(tags == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 50}, {2, 60}, {0, 61}});
  CHECK(removed == 1);
  CHECK(told.records().size() == 6);
}

TEST_CASE("after a restart only new changes are written; a new origin receives everything") {
  Told told;
  told.hear({heard("a", 1), heard("a", 2)}, 3);
  CHECK(told.tell() == 2);
  told.open();
  CHECK(told.tell() == 0);
  told.hear({tombstone(heard("a", 2), 70)}, 4);
  told.open();
  CHECK(told.tell() == 1);
  CHECK(told.records().size() == 3);
  told.origin = told.dir / "another";
  must(make_directory(told.origin));
  WriteBehind behind(*told.store, told.store->ledger(), told.origin);
  must(behind.take_new_origin(kNever));
  must(behind.wait(kNever));
  CHECK(behind.status().records_written == 3);
}

TEST_CASE("a missing or another origin at the known path is refused, and nothing is written there") {
  Told told;
  told.hear({heard("a", 1)}, 2);
  CHECK(told.tell() == 1);
  const std::string known = must(told.store->ledger().origin());
  CHECK(known == must(OriginDir::open(told.origin, kCluster)).uuid());
  told.hear({heard("a", 2)}, 3);
  told.put_away(told.dir / "real");
  const Error none = told.refusal();
  CHECK(none.code == Errc::changed);
  for (const std::string& part :
       {told.origin, "expected the origin " + known, std::string("got none; "), std::string("stage-out --new-origin")})
    CHECK_MESSAGE(none.message.find(part) != std::string::npos, none.message);
  CHECK(std::filesystem::is_empty(told.origin));
  const std::string other = must(OriginDir::open(told.origin, kCluster)).uuid();
  told.open();  // the store still knows the first origin after a restart
  CHECK(told.refusal().message.find("got the origin " + other) != std::string::npos);
  CHECK(told.records().empty());
  std::filesystem::remove_all(told.origin);
  std::filesystem::rename(told.dir / "real", told.origin);
  CHECK(told.tell() == 1);
  CHECK(told.records().size() == 2);
}

TEST_CASE("the origin of another cluster is refused by name until take_new_origin()") {
  Told told;
  told.hear({heard("a", 1), heard("a", 2)}, 3);
  OriginDir theirs = must(OriginDir::open(told.origin, "another cluster"));
  const auto check_refused = [&](const Error& refused) {
    CHECK(refused.code == Errc::changed);
    CHECK_MESSAGE(refused.message.find("expected an origin of cluster " + std::string(kCluster) +
                                       ", got that of cluster another cluster;") != std::string::npos,
                  refused.message);
    CHECK(told.records().empty());
  };
  check_refused(told.refusal());
  CHECK(must(told.store->ledger().origin()).empty());
  {
    WriteBehind behind(*told.store, told.store->ledger(), told.origin);
    const Status taken = behind.take_new_origin(kNever);
    REQUIRE(!taken.ok());
    check_refused(taken.error());
  }
  must(take_over_origin(told.origin, kCluster));
  CHECK(told.tell() == 2);
  CHECK(must(told.store->ledger().origin()) == theirs.uuid());
  CHECK(must(OriginDir::open_existing(told.origin)).cluster() == kCluster);
  // The error is the same for a known origin, after the other cluster took it back.
  must(theirs.take_over("a third"));
  must(theirs.take_over("another cluster"));
  told.hear({tombstone(heard("a", 2), 70)}, 4);
  const Error gone = told.refusal();
  CHECK(gone.message.find("got that of cluster another cluster;") != std::string::npos);
  CHECK(told.records().size() == 2);
}

TEST_CASE("a store that published before it had an origin makes one") {
  Told told;
  told.hear({own("a", 1)}, 3);
  SteppedTime time;
  const WriteBehind behind(*told.store, told.store->ledger(), told.origin, {}, time);
  static_cast<void>(time.next_pause());  // the first round has ended
  CHECK(must(told.store->ledger().origin()) == must(OriginDir::open_existing(told.origin)).uuid());
}

TEST_CASE("a cancelled take_new_origin() has no effect") {
  Told told;
  told.hear({heard("a", 1)}, 2);
  CHECK(told.tell() == 1);
  const std::string known = must(told.store->ledger().origin());
  told.put_away(told.dir / "real");
  const std::string hanging = told.origin + "/weft-origin";
  auto hangs = std::make_unique<HangingFile>(hanging);
  told.hear({heard("a", 2)}, 3);
  WriteBehind behind(*told.store, told.store->ledger(), told.origin);
  hangs->wait_for_opener();
  const auto late = [looks = 0]() mutable { return ++looks > 3; };
  CHECK(behind.take_new_origin(late).error().code == Errc::cancelled);
  std::filesystem::remove(hanging);
  const std::string other = must(OriginDir::open(told.origin, kCluster)).uuid();
  hangs.reset();
  CHECK(behind.wait(kNever).error().message.find("got the origin " + other) != std::string::npos);
  CHECK(must(told.store->ledger().origin()) == known);
}

TEST_CASE("a new origin makes all that this node published unsaved again, also what is told after a rebuild") {
  Told told;
  told.hear({own("a", 1), heard("a", 2)}, 3);
  const auto before = told.unsaved();
  REQUIRE(before.size() == 1);
  must(told.store->ledger().saved(before));
  CHECK(told.unsaved().empty());
  must(told.store->ledger().set_origin("another"));
  CHECK(told.unsaved() == before);
  told.store.reset();
  must(Store::rebuild(told.dir / "store", content_decoder(), no_progress()));
  told.open();
  CHECK(must(told.store->ledger().origin()) == "another");
}

TEST_CASE("versions that cannot get there keep no others waiting, whether somebody waits for them or not") {
  Told told;
  std::vector<MirrorChange> changes;
  // of a manifest that does not exist
  for (std::uint64_t number = 1; number <= 70; ++number) changes.emplace_back(own("stuck", number));
  for (const std::uint64_t number : {1001, 1002}) changes.emplace_back(own("other", number));
  told.hear(changes, 3);
  const OriginDir origin = must(OriginDir::open(told.origin, kCluster));
  for (const std::uint64_t number : {1001, 1002}) {
    const std::string manifest = std::to_string(number);
    const Digest digest = sha256(as_bytes(manifest));
    must(origin.put_places({digest, {}}));
    must(origin.put_manifest(digest, as_bytes(manifest)));
  }
  const auto last = told.unsaved().back();
  SteppedTime time;
  WriteBehind behind(*told.store, told.store->ledger(), told.origin, {}, time);
  must(behind.wait_for(last, kNever));
  static_cast<void>(time.next_pause());  // the first round has ended
  CHECK(told.unsaved().size() == 70);
}

TEST_CASE("records that another node has written are not written again") {
  Told one;
  Told two;
  for (const Told* node : {&one, &two})
    node->hear({heard("a", 1), MirroredTag{"a", "t", 1, 9, 2}, MirroredTag{"a", "t", 0, 0, 3}}, 3);
  CHECK(one.tell() == 3);
  two.origin = one.origin;
  CHECK(two.tell() == 3);
  CHECK(one.records().size() == 3);
}

TEST_CASE("after a rebuild all records are written again, without a change at the origin") {
  Told told;
  told.hear({heard("a", 1), MirroredTag{"a", "t", 1, 9, 2}}, 3);
  CHECK(told.tell() == 2);
  told.store.reset();
  const auto report = must(Store::rebuild(told.dir / "store", content_decoder(), no_progress()));
  CHECK(report.rebuilt);
  told.open();
  CHECK(told.tell() == 2);
  CHECK(told.records().size() == 2);
}

TEST_CASE("a thread that hangs in the origin is left behind without the store, and nothing is lost") {
  Told told;
  told.hear({heard("a", 1)}, 3);
  const std::string hanging = told.origin + "/weft-origin";
  std::filesystem::remove(hanging);
  auto hangs = std::make_unique<HangingFile>(hanging);
  {
    const WriteBehind behind(*told.store, told.store->ledger(), told.origin);
    hangs->wait_for_opener();
  }
  told.store.reset();
  hangs.reset();
  std::filesystem::remove(hanging);
  told.open();
  CHECK(told.tell() == 1);
}

}  // namespace weft::testing
