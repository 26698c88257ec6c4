// Random operations on a store in a cluster. After each one the store is compared with a naive model.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include <fmt/core.h>

#include "base/sha256.h"
#include "cluster_support.h"
#include "diskformat/pack_names.h"
#include "os/sys.h"
#include "random_runs.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr unsigned kContents = 30;

struct Naive {
  std::string model;
  std::uint64_t number = 0;
  Files files;
  bool own = false;
  bool adopted = false;
  bool removed = false;
  bool pinned = false;
  bool needs(unsigned content) const {
    return std::any_of(files.begin(), files.end(),
                       [&](const auto& file) { return std::count(file.begin(), file.end(), content) != 0; });
  }
  bool holds(unsigned content) const { return adopted && !removed && needs(content); }
};

class Run {
 public:
  explicit Run(std::uint64_t seed) : random_(seed) { mirror(*cluster_.store, {}, ++revision_); }

  void step() {
    switch (below(15)) {
      case 0:
      case 1:
      case 2:
        mirror_some();
        break;
      case 3:
      case 4:
        adopt_one();
        break;
      case 5:
        remove_one();
        break;
      case 6:
      case 7:
        publish();
        break;
      case 8:
      case 9:
        fetch_some();
        break;
      case 10:
        evict_some();
        break;
      case 11:
        pin_one();
        break;
      case 12:
        collect();
        break;
      case 13:
        hand_over_one();
        break;
      default:
        again();
        break;
    }
    compare();
  }

  void finish() {
    collect();
    compare();
    check();
  }

 private:
  using PacksByContent = std::map<PackId, std::set<unsigned>>;

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  Files random_files() {
    Files files(1 + below(3));
    for (auto& file : files)
      for (std::uint64_t i = below(5); i > 0; --i) file.push_back(static_cast<unsigned>(below(kContents)));
    return files;
  }

  std::uint64_t next_number(const std::string& model) {
    std::uint64_t number = 1;
    for (const Naive& version : versions_)
      if (version.model == model) number = std::max(number, version.number + 1);
    return number;
  }

  Naive* pick(const std::function<bool(const Naive&)>& fits) {
    std::vector<Naive*> found;
    for (Naive& version : versions_)
      if (fits(version)) found.push_back(&version);
    return found.empty() ? nullptr : found[below(found.size())];
  }

  static bool is_live(const Naive& version) { return !version.removed; }
  static bool is_bare(const Naive& version) { return !version.removed && !version.adopted; }

  void mirror_some() {
    std::vector<MirrorChange> changes;
    for (std::uint64_t i = 1 + below(4); i > 0; --i) {
      Naive version{fmt::format("m{}", below(4)), 0, random_files()};
      version.number = next_number(version.model);
      changes.emplace_back(record(version.model, version.number, version.files));
      versions_.push_back(version);
      // The manifest may be local already, if another version with the same content was adopted. The store may
      // keep a manifest without versions for a while, also the manifest of an abandoned publish.
      const std::vector<std::byte> manifest = manifest_of(version.files);
      versions_.back().adopted = is_here(manifest);
      CHECK((versions_.back().adopted || !manifests_.contains(manifest)));
    }
    if (const Naive* old = pick([](const Naive& version) { return !version.own; }); old != nullptr && below(2) == 0) {
      MirroredVersion again = record(old->model, old->number, old->files);
      changes.emplace_back(std::move(again));
    }
    CHECK(mirror(*cluster_.store, changes, ++revision_).empty());
  }

  bool is_here(const std::vector<std::byte>& manifest) { return cluster_.store->open_manifest(sha256(manifest)).ok(); }

  void adopt_one() {
    Naive* version = pick(is_bare);
    if (version == nullptr) return;
    must(adopt(*cluster_.store, version->model, version->number, version->files));
    version->adopted = true;
    manifests_.insert(manifest_of(version->files));
  }

  static VersionRow row_of(Snapshot& snapshot, const Naive& naive) {
    return must(snapshot.version(must(snapshot.model(naive.model)).id, naive.number));
  }

  void remove_one() {
    Naive* version = pick(is_live);
    if (version == nullptr || below(2) == 0) return;
    MirroredVersion gone = tombstone(record(version->model, version->number, version->files), 1);
    gone.version.uid = row_of(*must(cluster_.store->snapshot()), *version).uid;
    CHECK(mirror(*cluster_.store, {gone}, ++revision_).empty());
    version->removed = true;
    version->pinned = false;
  }

  bool is_held(unsigned content) {
    return std::any_of(versions_.begin(), versions_.end(), [&](const Naive& it) { return it.holds(content); });
  }

  void publish() {
    Naive version{fmt::format("m{}", below(4)), 0, random_files(), true, true};
    std::vector<unsigned> read;
    for (unsigned n = 0; n < kContents; ++n)
      if (version.needs(n) && (!is_held(n) || below(2) == 0)) read.push_back(n);
    auto prepared = must(prepare(*cluster_.store, version.model, version.files, read));
    if (below(4) == 0) return;  // abandoned: no trace of it stays, and its promoted packs are cached again
    own_cached(version);
    prepared->keep();
    MirroredVersion change = prepared->record();
    change.version.number = version.number = next_number(version.model);
    CHECK(mirror(*cluster_.store, {change}, ++revision_).empty());
    for (unsigned n : read) present_.insert(n);
    manifests_.insert(manifest_of(version.files));
    versions_.push_back(std::move(version));
  }

  void own_cached(const Naive& version) {
    std::erase_if(cached_, [&](const auto& pack) {
      const bool owned = std::ranges::any_of(pack.second, [&](unsigned n) { return version.needs(n); });
      if (owned) promoted_.insert(pack);
      return owned;
    });
  }

  void fetch_some() {
    std::vector<unsigned> wanted;
    for (unsigned n = 0; n < kContents; ++n)
      if (is_held(n) && !present_.contains(n) && below(3) == 0) wanted.push_back(n);
    if (wanted.empty()) return;
    const PackId pack = fetch(*cluster_.store, wanted);
    cached_[pack] = {wanted.begin(), wanted.end()};
    present_.insert(wanted.begin(), wanted.end());
  }

  bool is_pinned(const std::set<unsigned>& contents) {
    return std::any_of(versions_.begin(), versions_.end(), [&](const Naive& version) {
      return version.pinned && version.adopted &&
             std::any_of(contents.begin(), contents.end(), [&](unsigned n) { return version.needs(n); });
    });
  }

  void evict_some() {
    const std::uint64_t bound = below(2) * below(40'000);
    must(cluster_.store->cache().evict({bound, {}, false}));
    std::set<PackId> left;
    for (const CachedPack& pack : must(cluster_.store->cache().cached_packs())) left.insert(pack.id);
    std::erase_if(cached_, [&](const auto& pack) {
      const auto& [id, contents] = pack;
      CHECK((bound != 0 || left.contains(id) == is_pinned(contents)));
      CHECK((left.contains(id) || !is_pinned(contents)));
      if (left.contains(id)) return false;
      for (unsigned n : contents) present_.erase(n);
      return true;
    });
  }

  // Acts as if the origin had all packs.
  void hand_over_one() {
    std::vector<PackId> own;
    for (const std::string& name : must(list_directory(cluster_.path + "/packs")))
      if (const auto pack = pack_of_name(name, ".pack"); pack && !cached_.contains(*pack)) own.push_back(*pack);
    if (own.empty()) return;
    const PackId pack = own[below(own.size())];
    const bool given = must(cluster_.store->cache().make_evictable(pack));
    CHECK(given == (kind_of_pack(pack) == PackKind::blobs));
    if (!given) return;
    promoted_.erase(pack);
    std::set<unsigned>& contents = cached_[pack];
    auto snapshot = must(cluster_.store->snapshot());
    for (unsigned n = 0; n < kContents; ++n)
      if (const auto place = snapshot->find_blob(content_id(n)); place.ok() && place->pack == pack) contents.insert(n);
  }

  void pin_one() {
    Naive* version = pick(is_live);
    if (version == nullptr) return;
    version->pinned = !version->pinned;
    must(cluster_.store->pin(version->model, version->number, version->pinned));
  }

  void collect() {
    const PacksByContent before = in_packs();
    const bool bare = pick(is_bare) != nullptr;
    auto refused = cluster_.store->gc({false, revision_}, no_progress());
    if (bare) {
      CHECK(refused.error().code == Errc::busy);
      while (pick(is_bare) != nullptr) adopt_one();
    }
    make_old();
    must(cluster_.store->gc({false, revision_, true}, no_progress()));
    give_back_promoted();
    follow_rewrites(before);
    std::erase_if(present_, [&](unsigned n) {
      return !is_held(n) && std::ranges::none_of(cached_, [n](const auto& pack) { return pack.second.contains(n); });
    });
    std::set<std::vector<std::byte>> needed;
    for (const Naive& version : versions_)
      if (!version.removed) needed.insert(manifest_of(version.files));
    manifests_ = std::move(needed);
  }

  // Returns the contents that the index has in each pack.
  PacksByContent in_packs() {
    PacksByContent packs;
    auto snapshot = must(cluster_.store->snapshot());
    for (unsigned n = 0; n < kContents; ++n)
      if (const auto place = snapshot->find_blob(content_id(n)); place.ok()) packs[place->pack].insert(n);
    return packs;
  }

  // gc deletes a cached pack without live contents, and makes a cached pack of the live ones if there are others.
  // `before`: the contents of all packs before gc.
  void follow_rewrites(PacksByContent before) {
    PacksByContent left;
    const PacksByContent after = in_packs();
    auto snapshot = must(cluster_.store->snapshot());
    for (const auto& [id, contents] : cached_) {
      std::set<unsigned>& live = before[id];
      std::erase_if(live, [&](unsigned n) { return !is_held(n); });
      const PackId now = live.empty() ? id : must(snapshot->find_blob(content_id(*live.begin()))).pack;
      if (!after.contains(now)) continue;
      const std::set<unsigned>& there = after.at(now);
      CHECK(std::ranges::includes(there, live));
      CHECK(std::ranges::includes(contents, there));
      CHECK((now == id) == (there == contents));
      left[now] = there;
    }
    cached_ = std::move(left);
  }

  // Acts as if the last publish were long ago. For a minute after its start, a daemon keeps packs that its predecessor
  // may have asked the registry to publish.
  void make_old() {
    const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
    for (const std::string& name : must(list_directory(cluster_.path + "/packs")))
      std::filesystem::last_write_time(cluster_.path + "/packs/" + name, long_ago);
  }

  // A pack that a publish promoted from the cache is cached again when no version of this node needs it. That excludes
  // packs that gc has written.
  void give_back_promoted() {
    std::erase_if(promoted_, [&](const auto& pack) {
      const bool needed = std::ranges::any_of(pack.second, [&](unsigned n) { return is_held_as_own(n); });
      if (!needed) cached_.insert(pack);
      return !needed || !std::filesystem::exists(pack_path(cluster_.path, pack.first));
    });
  }

  bool is_held_as_own(unsigned content) {
    return std::ranges::any_of(versions_, [&](const Naive& it) { return it.own && it.holds(content); });
  }

  void again() {
    if (below(3) == 0) check();
    cluster_.close();
    const bool rebuilt = below(2) == 0;
    if (rebuilt) {
      std::filesystem::remove(cluster_.path + "/index/data.mdb");
      CHECK(must(Store::rebuild(cluster_.path, decode, no_progress())).problems == std::vector<std::string>{});
    }
    cluster_.open();
    // Revisions without changes left no record, so they are mirrored again.
    if (rebuilt) CHECK(mirror(*cluster_.store, {}, revision_).empty());
  }

  void check() { CHECK(must(cluster_.store->fsck({}, decode, no_progress())).problems == std::vector<std::string>{}); }

  void compare() {
    auto snapshot = must(cluster_.store->snapshot());
    for (std::size_t i = 0; i < versions_.size(); ++i) compare_version(*snapshot, i);
    std::uint64_t absent = 0;
    for (unsigned n = 0; n < kContents; ++n) absent += compare_content(*snapshot, n) ? 1 : 0;
    CHECK(must(cluster_.store->counts()).absent_blobs == absent);
    snapshot.reset();
    compare_bytes();
    CHECK(must(cluster_.store->cache().cached_packs()).size() == cached_.size());
  }

  void compare_version(Snapshot& snapshot, std::size_t index) {
    const Naive& naive = versions_[index];
    CAPTURE(naive.model);
    CAPTURE(naive.number);
    const VersionRow row = row_of(snapshot, naive);
    CHECK(row.id == index + 1);
    CHECK(row.removed == naive.removed);
    CHECK(row.publisher == (naive.own ? kHere : kElsewhere));
    if (naive.removed) return;
    REQUIRE(must(snapshot.is_bare(row.id)) == !naive.adopted);
    if (!naive.adopted) return;
    std::set<unsigned> earlier;
    for (std::size_t i = 0; i < index; ++i)
      for (unsigned n = 0; n < kContents; ++n)
        if (versions_[i].holds(n)) earlier.insert(n);
    for (std::uint32_t file = 0; file < naive.files.size(); ++file) {
      std::uint64_t owned = 0;
      for (unsigned n : naive.files[file])
        if (earlier.insert(n).second) owned += 1000 + n;
      CHECK(must(snapshot.owned_bytes(row.id, file)) == owned);
    }
  }

  // True if the content is absent.
  bool compare_content(Snapshot& snapshot, unsigned n) {
    CAPTURE(n);
    auto place = snapshot.find_blob(content_id(n));
    const bool held = is_held(n);
    if (present_.contains(n)) CHECK(place.ok());
    if (!present_.contains(n)) CHECK((!place.ok() && place.error().code == (held ? Errc::absent : Errc::not_found)));
    if (held) CHECK(must(snapshot.some_holders(content_id(n), 1000)).front().first == first_holder_of(n));
    return held && !present_.contains(n);
  }

  VersionId first_holder_of(unsigned n) {
    auto first = std::find_if(versions_.begin(), versions_.end(), [n](const Naive& it) { return it.holds(n); });
    return static_cast<VersionId>(first - versions_.begin()) + 1;
  }

  void compare_bytes() {
    const auto n = static_cast<unsigned>(below(kContents));
    if (!present_.contains(n)) return;
    OpenPlace place = must(cluster_.store->open_blob(content_id(n)));
    std::vector<std::byte> bytes(1000 + n);
    must(read_exact(place.pack->fd(), place.offset, bytes, "pack"));
    CHECK(bytes == content_bytes(n));
  }

  TestCluster cluster_;
  std::mt19937_64 random_;
  std::uint64_t revision_ = 0;
  std::vector<Naive> versions_;  // in the registry's order
  std::set<unsigned> present_;   // local contents
  PacksByContent cached_;
  PacksByContent promoted_;                     // formerly cached packs
  std::set<std::vector<std::byte>> manifests_;  // local manifests
};

}  // namespace

TEST_CASE("random operations of a cluster agree with the naive way") {
  run_rounds<Run>(120);
}
