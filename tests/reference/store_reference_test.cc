// Random operations on a real store. After each one the store is compared with NaiveStore.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <random>

#include "base/text.h"
#include "os/sys.h"
#include "random_runs.h"
#include "reference/naive_store.h"
#include "testing.h"
#include "weft/bytes/pack.h"
#include "weft/model/version_content.h"
#include "weft/store/fsck.h"
#include "weft/store/gc.h"
#include "weft/store/publish.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"

using namespace weft;
using namespace weft::reference;
using namespace weft::testing;

namespace {

constexpr std::uint64_t kTreeNodes = 3;

VersionContent content_from(const NaiveContent& naive, const std::map<std::string, Extent>& known) {
  VersionContent content;
  content.tree_nodes = kTreeNodes;
  for (const NaiveFile& file : naive) {
    VersionContent::FileContent extents;
    for (const NaiveTensor& tensor : file.tensors) {
      const Extent& extent = known.at(tensor.bytes);
      const ContentId& id = extent.id;
      extents.extents.push_back(extent);
      content.views.push_back({id, static_cast<DType>(tensor.dtype), tensor.shape, ""});
      content.logical_bytes += tensor.bytes.size();
    }
    content.files.push_back(std::move(extents));
  }
  return content;
}

class Run {
 public:
  explicit Run(std::uint64_t seed) : random_(seed) {
    must(Store::create(dir_ / "store", CreateOptions{}));
    open();
    for (std::size_t i = 0; i < 24; ++i) pool_.push_back(random_content(i));
  }

  void step() {
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        publish();
        break;
      case 5:
        tag();
        break;
      case 6:
      case 7:
        remove();
        break;
      case 8:
        collect();
        break;
      case 9:
        store_.reset();
        open();
        break;
      case 10:
        if (below(4) == 0) rebuild();
        break;
      default:
        break;
    }
    compare();
  }

  void finish() {
    collect();
    compare();
    FsckReport report = must(store_->fsck(FsckOptions{}, decoder(), no_progress()));
    for (const std::string& problem : report.problems) FAIL_CHECK(problem);
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  // Returns content of a random size, near all thresholds of a store.
  std::string random_content(std::size_t i) {
    static constexpr std::uint64_t kSizes[] = {1,      7,      100,     4095,      4096,           4097,
                                               65'000, 70'000, 300'000, 1U << 20U, (1U << 20U) + 1};
    auto bytes = random_bytes(kSizes[below(std::size(kSizes))], random_() + i);
    return std::string(as_text(bytes));
  }

  ContentDecoder decoder() {
    return [this](std::span<const std::byte> manifest) -> Result<VersionContent> {
      std::optional<NaiveContent> naive = decode(std::string(as_text(manifest)));
      if (!naive) return Error{Errc::corrupt, "not a test manifest"};
      return content_from(*naive, extents_);
    };
  }

  void open() {
    OpenOptions options;
    options.write = true;
    options.decode = decoder();
    store_ = must(Store::open(dir_ / "store", options));
  }

  NaiveContent random_version() {
    NaiveContent content(1 + below(3));
    for (NaiveFile& file : content) {
      file.tensors.resize(below(6));
      for (NaiveTensor& tensor : file.tensors) {
        tensor.bytes = pool_[below(pool_.size())];
        if (below(8) == 0) tensor.bytes = pool_.emplace_back(random_content(pool_.size()));
        tensor.dtype = static_cast<std::uint8_t>(below(2) == 0 ? DType::u8 : DType::i8);
        tensor.shape = below(2) == 0 ? std::vector<std::uint64_t>{tensor.bytes.size()}
                                     : std::vector<std::uint64_t>{1, tensor.bytes.size()};
      }
    }
    return content;
  }

  std::string random_model() {
    static const char* const kNames[] = {"alpha", "beta", "org/gamma", "org/delta", "org/deep/epsilon"};
    return kNames[below(std::size(kNames))];
  }

  void add_file(Import& import, const NaiveFile& file) {
    std::string text;
    std::vector<Range> ranges;
    for (const NaiveTensor& tensor : file.tensors) {
      ranges.push_back({text.size(), tensor.bytes.size()});
      text += tensor.bytes;
    }
    write_file(dir_ / "source", text);
    Fd fd = must(open_file(dir_ / "source", O_RDONLY));
    std::vector<Extent> extents = must(import.add(fd.get(), "source", ranges, no_progress()));
    REQUIRE(extents.size() == ranges.size());
    for (std::size_t i = 0; i < extents.size(); ++i) {
      auto [known, fresh] = extents_.emplace(file.tensors[i].bytes, extents[i]);
      CHECK(known->second.id == extents[i].id);
      CHECK(known->second.head == extents[i].head);
      CHECK(extents[i].id.length == file.tensors[i].bytes.size());
    }
  }

  void publish() {
    NaiveVersion version;
    version.model = random_model();
    version.content = random_version();
    version.message = fmt::format("message {}", random_());
    if (!naive_.live_models().empty() && below(2) == 0) {
      auto models = naive_.live_models();
      const std::string& parent = models[below(models.size())];
      version.parents.emplace_back(parent, naive_.latest(parent));
    }
    auto import = must(store_->begin_import(Durability::local));
    for (const NaiveFile& file : version.content) add_file(*import, file);
    if (below(10) == 0) return;  // abandoned: no trace of it may stay

    PublishRequest request;
    request.model = version.model;
    std::string manifest = encode(version.content);
    auto bytes = as_bytes(manifest);
    request.manifest.assign(bytes.begin(), bytes.end());
    request.content = content_from(version.content, extents_);
    for (const auto& [model, number] : version.parents)
      request.parents.push_back({model, number, below(2) == 0, below(9), below(1000)});
    version.parent_refs = request.parents;
    if (below(4) == 0) request.elsewhere = version.elsewhere = {fmt::format("else/{}", below(5))};
    request.message = version.message;
    bool tagged = below(4) == 0;
    if (tagged) request.tags = {"fresh"};
    PublishOutcome outcome = must(import->publish(request));
    std::string model = version.model;
    auto [number, made] = naive_.publish(std::move(version));
    if (tagged) naive_.set_tag(model, "fresh", number);
    CHECK(outcome.made == made);
    CHECK(outcome.version.number == number);
  }

  void tag() {
    auto models = naive_.live_models();
    if (models.empty()) return;
    const std::string& model = models[below(models.size())];
    std::string name = below(2) == 0 ? "best" : "prod";
    if (below(3) == 0 && naive_.tags(model).count(name) != 0) {
      must(store_->set_tag(model, name, std::nullopt));
      naive_.delete_tag(model, name);
      return;
    }
    std::uint64_t number = naive_.latest(model);
    must(store_->set_tag(model, name, number));
    naive_.set_tag(model, name, number);
  }

  void remove() {
    std::vector<const NaiveVersion*> live;
    for (const NaiveVersion& version : naive_.versions()) {
      if (!version.removed) live.push_back(&version);
    }
    CHECK(store_->remove_version("alpha", 1'000'000).error().code == Errc::not_found);
    if (live.size() < 3) return;
    const NaiveVersion& version = *live[below(live.size())];
    std::string model = version.model;
    std::uint64_t number = version.number;
    must(store_->remove_version(model, number));
    naive_.remove(model, number);
  }

  void collect() { must(store_->gc(GcOptions{}, no_progress())); }

  void rebuild() {
    store_.reset();
    must(remove_file(dir_ / "store/index/data.mdb"));
    FsckReport report = must(Store::rebuild(dir_ / "store", decoder(), no_progress()));
    for (const std::string& problem : report.problems) FAIL_CHECK(problem);
    open();
  }

  void compare() {
    auto snapshot = must(store_->snapshot());
    compare_models(*snapshot);
    for (std::size_t i = 0; i < naive_.versions().size(); ++i) compare_version(*snapshot, i);
    CHECK(must(store_->counts()).blob_bytes == naive_.unique_bytes());
    snapshot.reset();
    for (int i = 0; i < 3; ++i) compare_bytes();
  }

  void compare_models(Snapshot& snapshot) {
    std::vector<std::string> names;
    for (const ModelRow& model : must(snapshot.models()).rows) {
      CHECK(model.latest == naive_.latest(model.name));
      if (model.latest == 0) continue;
      names.push_back(model.name);
      std::map<std::string, std::uint64_t> tags;
      for (const TagRow& tag : must(snapshot.tags(model.id)).rows) tags[tag.name] = tag.number;
      CHECK(tags == naive_.tags(model.name));
      std::map<std::string, std::uint64_t> by_version;
      for (std::uint64_t number = 1; number < model.next_number; ++number)
        for (const std::string& name : must(snapshot.tags_of(model.id, number)).rows) by_version[name] = number;
      CHECK(by_version == tags);
    }
    CHECK(names == naive_.live_models());
    CHECK(listed(snapshot, "") == naive_.live_models());
  }

  // Returns the models that a walk of models/ finds.
  std::vector<std::string> listed(Snapshot& snapshot, const std::string& prefix) {
    std::vector<std::string> names;
    auto entries = snapshot.namespace_entries(prefix);
    if (!entries.ok() && prefix.empty()) return names;
    for (const NamespaceEntry& entry : must(std::move(entries)).rows) {
      std::string name = prefix.empty() ? entry.component : prefix + "/" + entry.component;
      remember_ino("dir " + name, entry.ino);
      if (entry.is_model) {
        names.push_back(name);
        continue;
      }
      for (std::string& deeper : listed(snapshot, name)) names.push_back(std::move(deeper));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  void remember_ino(const std::string& what, Ino ino) {
    auto [known, fresh] = inos_.emplace(what, ino);
    INFO(what);
    CHECK(known->second == ino);
    if (fresh) CHECK(all_inos_.insert(ino).second);
  }

  void compare_version(Snapshot& snapshot, std::size_t index) {
    const NaiveVersion& naive = naive_.versions()[index];
    ModelRow model = must(snapshot.model(naive.model));
    VersionRow row = must(snapshot.version(model.id, naive.number));
    CHECK(row.removed == naive.removed);
    CHECK(row.message == naive.message);
    REQUIRE(row.parents.size() == naive.parent_refs.size());
    for (std::size_t i = 0; i < row.parents.size(); ++i)
      compare_parent(snapshot, row, row.parents[i], naive.parent_refs[i]);
    CHECK(row.elsewhere == naive.elsewhere);
    CHECK(row.died == (naive.removed ? naive.died : 0));
    CHECK(row.born == naive.born);
    std::string key = fmt::format("{}@{}", naive.model, naive.number);
    auto [known, fresh] = times_.emplace(key, row.time_ns);
    CHECK(known->second == row.time_ns);
    if (naive.removed) return;

    LocalRow local = must(snapshot.local(row.id));
    CHECK(local.ino_count == kTreeNodes);
    remember_ino(key, local.ino_base);
    CHECK(must(snapshot.inode(local.ino_base + kTreeNodes - 1)).version == row.id);
    std::size_t ordinal = 0;
    for (std::size_t f = 0; f < naive.content.size(); ++f) {
      CHECK(must(snapshot.owned_bytes(row.id, static_cast<std::uint32_t>(f))) == naive_.owned_bytes(index, f));
      for (const NaiveTensor& tensor : naive.content[f].tensors) {
        InodeRow inode = must(snapshot.inode(local.view_inos.at(ordinal++)));
        CHECK(inode.kind == InodeKind::view);
        CHECK(inode.view_links == naive_.view_links(tensor));
        auto [first, seen_now] = view_firsts_.emplace(inode.base, inode.view_first);
        CHECK(first->second == (seen_now ? row.id : inode.view_first));
        CHECK(inode.view.content == extents_.at(tensor.bytes).id);
        CHECK(inode.view.shape == tensor.shape);
      }
    }
  }

  void compare_parent(Snapshot& snapshot, const VersionRow& row, const ParentRef& have, const ParentRef& want) {
    CHECK(have.model == want.model);
    CHECK(have.number == want.number);
    CHECK(have.declared == want.declared);
    CHECK(have.same_tensors == want.same_tensors);
    CHECK(have.same_bytes == want.same_bytes);
    CHECK(must(snapshot.version(have.id)).model_name == want.model);
    auto children = must(snapshot.children(have.id)).rows;
    CHECK(std::count(children.begin(), children.end(), row.id) == 1);
  }

  void compare_bytes() {
    const auto& versions = naive_.versions();
    if (versions.empty()) return;
    const NaiveVersion& version = versions[below(versions.size())];
    if (version.removed) return;
    for (const NaiveFile& file : version.content) {
      for (const NaiveTensor& tensor : file.tensors) {
        OpenPlace place = must(store_->open_blob(extents_.at(tensor.bytes).id));
        std::uint64_t from = below(tensor.bytes.size());
        std::vector<std::byte> got(1 + below(tensor.bytes.size() - from));
        must(read_exact(place.pack->fd(), place.offset + from, got, "pack"));
        CHECK(as_text(got) == std::string_view(tensor.bytes).substr(from, got.size()));
      }
    }
  }

  TempDir dir_;
  std::mt19937_64 random_;
  std::unique_ptr<Store> store_;
  NaiveStore naive_;
  std::vector<std::string> pool_;
  std::map<std::string, Extent> extents_;
  std::map<std::string, Ino> inos_;
  std::set<Ino> all_inos_;
  std::map<std::string, std::uint64_t> times_;
  std::map<Ino, VersionId> view_firsts_;
};

}  // namespace

TEST_CASE("random operations agree with the naive store") {
  run_rounds<Run>(120);
}
