// The tree of a node without local content: the manifest and bytes of a version are fetched on demand.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>

#include "blobs/fd_pack.h"
#include "blobs/open_blobs.h"
#include "fakes/node_fixture.h"
#include "os/memory_file.h"
#include "os/sys.h"
#include "unit/vfs/publish_dataset.h"
#include "weft/bytes/run_list.h"
#include "weft/programs/vfs.h"
#include "weft/store/cluster_store.h"

namespace weft::testing {
namespace {

// Fetches from the store of another node.
class Lender final : public ColdReads {
 public:
  Lender(Fixture& near, ClusterStore& far) : near_(near), far_(far) {}

  Status resolve(VersionId version) override {
    ++resolved;
    if (!answers.ok()) return answers;
    WEFT_TRY(const auto snapshot, far_.snapshot());
    WEFT_TRY(const VersionRow row, snapshot->version(version));
    WEFT_TRY(const auto manifest, near_.store->open_manifest(row.manifest));
    const auto bytes = manifest->bytes();
    const Adoption adoption{row.model_name, row.number, {bytes.begin(), bytes.end()}};
    return far_.cache().adopt(std::span(&adoption, 1));
  }

  Result<std::vector<Run>> bring(const ColdRange& what) override {
    if (!answers.ok()) return answers.error();
    if (silent > 0) {
      --silent;
      return Error{Errc::timed_out, "the holder is silent"};
    }
    asked.push_back(what.range);
    of_one_tensor += what.one_tensor ? 1 : 0;
    ends.push_back(what.range.offset + what.range.length + what.ahead);
    WEFT_TRY(const auto snapshot, far_.snapshot());
    WEFT_TRY(const VersionRow known, snapshot->version(what.version));
    WEFT_TRY(const auto row, near_.resolve(known.model_name));
    WEFT_TRY(const auto loaded, load_version(*near_.store, no_resolver(), row));
    std::vector<Run> pieces;
    for (const Extent& extent : loaded.tree->manifest().files[what.file].extents) {
      const std::uint64_t begin = std::max(extent.offset, what.range.offset);
      const std::uint64_t end = std::min(extent.offset + extent.id.length, what.range.offset + what.range.length);
      if (begin >= end) continue;
      WEFT_TRY(OpenPlace place, near_.store->open_blob(extent.id));
      place.offset += begin - extent.offset;
      pieces.push_back({begin, end - begin, std::move(place)});
    }
    return pieces;
  }

  class Later final : public Begun {
   public:
    Later(Lender& lender, const ColdRange& what) : lender_(lender), what_(what) {}
    Result<std::vector<Run>> take() override {
      ++lender_.taken;
      if (lender_.fails_later) return Error{Errc::unreachable, "it went away"};
      return lender_.bring(what_);
    }

   private:
    Lender& lender_;
    const ColdRange what_;
  };
  std::unique_ptr<Begun> begin(const ColdRange& what) override {
    if (!begins) return nullptr;
    begun.push_back(what.range);
    return std::make_unique<Later>(*this, what);
  }
  void trim() override { ++trims; }
  ColdAdvice advice() override { return advised; }

  bool begins = false, fails_later = false;
  int silent = 0;  // calls of bring() that fail before one succeeds
  int taken = 0, trims = 0;
  int of_one_tensor = 0;  // calls of bring()
  std::vector<Range> begun;
  int resolved = 0;
  ColdAdvice advised;
  std::vector<Range> asked;
  std::vector<std::uint64_t> ends;  // ends of the ranges fetched and prefetched
  Status answers;

 private:
  Fixture& near_;
  ClusterStore& far_;
};

// Fetches one file through a new descriptor each time, as a daemon does.
class FileLender final : public ColdReads {
 public:
  explicit FileLender(std::string path) : path_(std::move(path)) {}
  Status resolve(VersionId /*version*/) override { return {}; }
  Result<std::vector<Run>> bring(const ColdRange& what) override {
    ++brings;
    if (!answers.ok()) return answers.error();
    WEFT_TRY(Fd file, open_file(path_, O_RDONLY));
    WEFT_TRY(const auto facts, stat_fd(file.get(), path_));
    auto pack = std::make_shared<FdPack>(std::move(file), static_cast<std::uint64_t>(facts.st_size), 1);
    return std::vector<Run>{{what.range.offset, what.range.length, {std::move(pack), what.range.offset}}};
  }
  ColdAdvice advice() override { return {}; }

  int brings = 0;
  Status answers;

 private:
  const std::string path_;
};

// Passes chunks of one file from memory, as a daemon without space for them does.
class PassingLender final : public ColdReads {
 public:
  static constexpr std::uint64_t kChunk = 512U << 10U;
  explicit PassingLender(std::string bytes) : bytes_(std::move(bytes)) {}
  Status resolve(VersionId /*version*/) override { return {}; }
  Result<std::vector<Run>> bring(const ColdRange& what) override {
    ++brings;
    if (what.range.length > kPassMax) return Error{Errc::no_space, "too much to pass"};
    const bool empty = emptied > 0 && emptied-- > 0;
    std::vector<Run> pieces;
    for (std::uint64_t at = what.range.offset / kChunk * kChunk; at < end_of(what.range); at += kChunk) {
      const std::string chunk = bytes_.substr(at, kChunk);
      WEFT_TRY(Fd file, memory_file("a chunk", as_bytes(empty ? std::string() : chunk)));
      auto pack = std::make_shared<FdPack>(std::move(file), chunk.size(), kPassingPack);
      pieces.push_back({at, chunk.size(), {std::move(pack), 0}});
    }
    return pieces;
  }
  ColdAdvice advice() override { return {}; }

  int brings = 0;
  int emptied = 0;  // answers whose packs the daemon empties before the reader comes

 private:
  const std::string bytes_;
};

struct Far {
  Fixture near;
  TempDir dir;
  std::unique_ptr<ClusterStore> store;
  std::unique_ptr<Lender> lender;
  std::unique_ptr<Vfs> vfs;

  explicit Far(std::optional<ColdPolicy> policy = ColdPolicy::stream, bool lends = true) {
    write_model(near.dir / "source", 7);
    near.publish({near.dir / "source"}, "model");
    open();
    mirror();
    lender = std::make_unique<Lender>(near, *store);
    VfsOptions options;
    options.cold = lends ? lender.get() : nullptr;
    options.cold_policy = policy;
    vfs = Vfs::make(*store, options);
  }

  void open() {
    REQUIRE(Store::create(dir / "store", {}).ok());
    OpenOptions options;
    options.decode = content_decoder();
    auto opened = ClusterStore::open(dir / "store", options);
    REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.error().message));
    store = std::move(opened).value();
    REQUIRE(store->mirror().join({"test", "00000000-0000-4000-8000-000000000001"}).ok());
  }

  // `message`: a later one, from a node whose clock is far behind; "": none.
  void mirror(const std::string& model = "model", const std::string& message = {}) const {
    MirroredVersion change;
    change.version = near.resolve(model).value();
    change.version.described_ns = message.empty() ? 0 : 1;
    if (!message.empty()) change.version.message = message;
    change.version.publisher = "00000000-0000-4000-8000-000000000002";
    const LocalRow local = near.store->snapshot().value()->local(change.version.id).value();
    change.tree_nodes = local.ino_count;
    const MirrorChange changes[] = {change};
    const auto mirrored = store->mirror().apply(changes, 1);
    REQUIRE_MESSAGE(mirrored.ok(), (mirrored.ok() ? "" : mirrored.error().message));
    REQUIRE(mirrored->problems.empty());
  }

  Result<Attr> find(std::string_view path) const {
    Ino at = kRootIno;
    Attr attr;
    while (!path.empty()) {
      const std::size_t slash = std::min(path.find('/'), path.size());
      WEFT_TRY(attr, vfs->lookup(at, path.substr(0, slash)));
      at = attr.ino;
      path.remove_prefix(std::min(slash + 1, path.size()));
    }
    return attr;
  }

  Result<std::string> read(std::string_view path, std::uint64_t offset = 0, std::size_t size = 1U << 20U) const {
    WEFT_TRY(const Attr attr, find(path));
    WEFT_TRY(const Opened opened, vfs->open_with_attr(attr.ino));
    const auto& file = opened.file;
    std::vector<std::byte> bytes(size);
    WEFT_TRY(const std::size_t got, file->read(offset, bytes));
    return std::string(as_text(std::span(bytes).first(got)));
  }
};

}  // namespace

TEST_CASE("a version that is known by name is resolved once, then listed like any other") {
  const Far far;
  const auto model = far.find("models/model");
  REQUIRE(model.ok());
  CHECK(far.vfs->list(model->ino, 0).ok());
  for (const char* listed : {"hub/models--model/refs", "hub/models--model/snapshots"})
    CHECK(far.vfs->list(must(far.find(listed)).ino, 0).ok());
  CHECK(far.lender->resolved == 0);
  const auto version = far.find("models/model/1");
  REQUIRE_MESSAGE(version.ok(), (version.ok() ? "" : version.error().message));
  const auto entries = far.vfs->list(version->ino, 0);
  REQUIRE_MESSAGE(entries.ok(), (entries.ok() ? "" : entries.error().message));
  CHECK(std::ranges::any_of(entries->entries, [](const DirEntry& entry) { return entry.name == "model.safetensors"; }));
  CHECK(far.read("lineage/model/1/info.json").ok());
  CHECK(far.lender->resolved == 1);
  CHECK(far.lender->asked.empty());
}

TEST_CASE("a new message is in info.json at once, also from a node whose clock is behind") {
  const Far far;
  CHECK(far.read("lineage/model/1/info.json").value().find("said later") == std::string::npos);
  far.mirror("model", "said later");
  CHECK(far.read("lineage/model/1/info.json").value().find("said later") != std::string::npos);
}

TEST_CASE("the small files and the records of a data set are read where its bundles and tables are not local") {
  const Far far;
  DatasetSpec spec;
  spec.small = {{"a/1", "one"}, {"a/2", std::string(200'000, '2')}, {"b", "bee"}};
  spec.containers["t.tar"] = {"0123456789", {{"x", 2, 3}}};
  publish_dataset(*far.near.store, far.near.dir, "set", spec);
  far.mirror("set");
  const auto version = far.find("datasets/set/1");
  REQUIRE_MESSAGE(version.ok(), (version.ok() ? "" : version.error().message));
  CHECK(far.lender->asked.empty());
  for (const auto& [path, content] : spec.small) CHECK(far.read("datasets/set/1/" + path).value() == content);
  CHECK(far.read("records/set/1/t.tar/files/x").value() == "234");
  CHECK(far.read("records/set/1/@files/keys.txt").value() == "b\na/1\na/2\n");
  CHECK(far.read("lineage/set/1/info.json").ok());
  far.lender->answers = Error{Errc::unreachable, "nobody is there"};
  far.vfs->trim();
  CHECK(far.read("datasets/set/1/b").ok());  // fetched bytes stay in memory for some seconds
}

TEST_CASE("owned bytes go to an earlier version once its content is known") {
  Far far;
  write_model(far.near.dir / "other", 7);
  write_file(far.near.dir / "other/more.txt", "more");
  far.near.publish({far.near.dir / "other"}, "other");
  far.mirror("other");
  const auto before = far.find("models/other/1/model.safetensors");
  REQUIRE(before.ok());
  CHECK(before->blocks > 1);
  CHECK(far.find("models/model/1/model.safetensors")->blocks == before->blocks);
  CHECK(far.find("models/other/1/model.safetensors")->blocks < before->blocks);
}

TEST_CASE("remote files, tensors and layers read as local ones, with each policy") {
  for (const ColdPolicy policy : {ColdPolicy::automatic, ColdPolicy::stream, ColdPolicy::fetch}) {
    const Far far(policy);
    const auto there = Vfs::make(*far.near.store, {});
    const std::string file = read_text(far.near.dir / "source/model.safetensors");
    CHECK(far.read("models/model/1/model.safetensors").value() == file);
    CHECK(far.read("models/model/1/model.safetensors", 9000, 5000).value() == file.substr(9000, 5000));
    CHECK(far.read("models/model/1/1_Pooling/config.json").value() == "{\"dim\": 64}");
    CHECK(far.read("models/model/1/empty.txt").value().empty());
    const std::string view = far.read("tensors/model/1/encoder.1.weight.npy").value();
    CHECK(view.ends_with(as_text(random_bytes(16384, 1001))));
    const std::string layer = far.read("layers/model/1/encoder/0.safetensors").value();
    CHECK(layer.ends_with(as_text(random_bytes(16384, 7))));
  }
}

TEST_CASE("a view asks for its own bytes alone, and streamed reads for what they read") {
  const Far far;
  CHECK(far.read("tensors/model/1/encoder.1.weight.npy").ok());
  for (const Range& range : far.lender->asked) CHECK(range.length <= 16384);
  std::uint64_t asked = 0;
  for (const Range& range : far.lender->asked) asked += range.length;
  CHECK(asked <= 16384);
}

TEST_CASE("a read of a small view is of one tensor; a read of a large view or of another file is not") {
  Far far;
  far.lender->begins = true;
  CHECK(far.read("tensors/model/1/encoder.1.weight.npy").ok());
  CHECK(far.lender->of_one_tensor == 1);
  far.lender->begins = false;
  CHECK(far.read("tensors/model/1/encoder.0.weight.npy").ok());
  CHECK(far.lender->of_one_tensor == 2);
  const std::size_t before = far.lender->asked.size();
  CHECK(far.read("models/model/1/model.safetensors").ok());
  CHECK(far.read("layers/model/1/encoder/0.safetensors").ok());
  constexpr std::size_t kTensor = (32U << 20U) + 1;
  write_file(far.near.dir / "large/model.safetensors",
             safetensors_file({{"first", "U8", {kTensor}, random_bytes(kTensor, 1)}}));
  far.near.publish({far.near.dir / "large"}, "model");
  far.mirror();
  CHECK(far.read("tensors/model/2/first.npy", kTensor, 10).ok());
  CHECK(far.lender->asked.size() > before);
  CHECK(far.lender->of_one_tensor == 2);
}

TEST_CASE("a small view is on its way once it is open, and whoever reads it first takes it") {
  for (const bool fails : {false, true}) {
    const Far far;
    far.lender->begins = true;
    far.lender->fails_later = fails;
    const auto attr = far.find("tensors/model/1/encoder.1.weight.npy");
    REQUIRE(attr.ok());
    const auto view = far.vfs->open(attr->ino);
    REQUIRE(view.ok());
    CHECK(far.lender->begun.size() == 1);
    CHECK(far.lender->asked.empty());
    for (int i = 0; i < 2; ++i) {
      std::vector<std::byte> bytes(attr->size);
      REQUIRE((*view)->read(0, bytes).ok());
      CHECK(std::ranges::equal(std::span(bytes).last(16384), random_bytes(16384, 1001)));
    }
    CHECK(far.lender->taken == 1);
    CHECK(far.lender->asked.size() == 1);
    CHECK(far.lender->asked.front().length == 16384);
  }
}

TEST_CASE("only small tensor files start a fetch at open; unused fetches are cancelled") {
  for (const ColdPolicy policy : {ColdPolicy::stream, ColdPolicy::fetch}) {
    const Far far(policy);
    far.lender->begins = true;
    CHECK(far.read("models/model/1/model.safetensors").ok());
    CHECK(far.read("layers/model/1/encoder/0.safetensors").ok());
    if (policy == ColdPolicy::fetch) CHECK(far.read("tensors/model/1/encoder.1.weight.npy").ok());
    CHECK(far.lender->begun.empty());
    far.vfs->trim();
    CHECK(far.lender->trims == 1);
  }
}

TEST_CASE("a page fault waits for a source with the automatic policy; other reads, and other policies, do not") {
  constexpr std::size_t kTensor = 9U << 20U;  // it is streamed
  for (const ColdPolicy policy : {ColdPolicy::automatic, ColdPolicy::stream}) {
    Far far(policy);
    const auto tensor = random_bytes(kTensor, 1);
    write_file(far.near.dir / "large/model.safetensors", safetensors_file({{"first", "U8", {kTensor}, tensor}}));
    far.near.publish({far.near.dir / "large"}, "model");
    far.mirror();
    for (const char* path : {"models/model/2/model.safetensors", "tensors/model/2/first.npy"}) {
      const auto attr = far.find(path);
      REQUIRE(attr.ok());
      const auto file = far.vfs->open(attr->ino);
      REQUIRE(file.ok());
      std::vector<std::byte> bytes(4096);
      const auto read_as = [&](bool faults, int silent) {
        const ColdWait wait([] { return true; }, [faults] { return faults; });
        far.lender->silent = silent;
        return (*file)->read(attr->size - bytes.size(), bytes);
      };
      const auto plain = read_as(false, 1);
      REQUIRE_FALSE(plain.ok());
      CHECK(plain.error().code == Errc::io);
      const auto fault = read_as(true, 2);
      CHECK(fault.ok() == (policy == ColdPolicy::automatic));
      CHECK(far.lender->silent == (policy == ColdPolicy::automatic ? 0 : 1));
      far.lender->silent = 0;
      if (fault.ok()) CHECK(std::ranges::equal(bytes, std::span(tensor).last(bytes.size())));
    }
  }
}

TEST_CASE("a page fault that nobody waits for any more ends") {
  const Far far(ColdPolicy::automatic);
  const auto attr = far.find("tensors/model/1/encoder.1.weight.npy");
  REQUIRE(attr.ok());
  const auto file = far.vfs->open(attr->ino);
  REQUIRE(file.ok());
  std::vector<std::byte> bytes(attr->size);
  for (const bool killed : {true, false}) {
    int polls = 0;
    const ColdWait wait([&] { return !killed || ++polls < 3; }, [&] { return killed || ++polls < 3; });
    far.lender->silent = 1000;
    const auto read = (*file)->read(0, bytes);
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().code == (killed ? Errc::cancelled : Errc::io));
    CHECK(far.lender->silent > 990);
  }
}

TEST_CASE("read-ahead of a tensor file ends at its end") {
  constexpr std::size_t kTensor = 8U << 20U;
  constexpr std::size_t kStep = 1U << 20U;
  Far far;
  const auto tensor = random_bytes(kTensor, 1);
  const std::string file =
      safetensors_file({{"first", "U8", {kTensor}, tensor}, {"next", "U8", {kTensor}, random_bytes(kTensor, 2)}});
  write_file(far.near.dir / "large/model.safetensors", file);
  far.near.publish({far.near.dir / "large"}, "model");
  far.mirror();
  const auto attr = far.find("tensors/model/2/first.npy");
  REQUIRE(attr.ok());
  const auto view = far.vfs->open(attr->ino);
  REQUIRE(view.ok());
  std::vector<std::byte> bytes(attr->size);
  for (std::size_t at = 0; at < bytes.size(); at += kStep)
    REQUIRE((*view)->read(at, std::span(bytes).subspan(at, std::min(kStep, bytes.size() - at))).ok());
  CHECK(std::ranges::equal(std::span(bytes).last(kTensor), tensor));
  const std::uint64_t end = file.size() - kTensor;
  CHECK(std::ranges::max(far.lender->ends) == end);
}

TEST_CASE("a view that is better fetched whole moves nothing at its opening, and all of it at its first read") {
  constexpr std::size_t kTensor = 3U << 20U;
  Far far(std::nullopt);
  const auto tensor = random_bytes(kTensor, 1);
  write_file(
      far.near.dir / "large/model.safetensors",
      safetensors_file({{"first", "U8", {kTensor}, tensor}, {"next", "U8", {kTensor}, random_bytes(kTensor, 2)}}));
  far.near.publish({far.near.dir / "large"}, "model");
  far.mirror();
  for (const ColdPolicy policy : {ColdPolicy::automatic, ColdPolicy::fetch}) {
    far.lender->advised.policy = policy;
    far.lender->asked.clear();
    far.lender->ends.clear();
    const auto attr = far.find("tensors/model/2/first.npy");
    REQUIRE(attr.ok());
    const auto view = far.vfs->open(attr->ino);
    REQUIRE(view.ok());
    CHECK(far.lender->asked.empty() == (policy == ColdPolicy::automatic));
    std::vector<std::byte> bytes(4096);
    REQUIRE((*view)->read(attr->size - kTensor, bytes).ok());
    CHECK(std::ranges::equal(bytes, std::span(tensor).first(bytes.size())));
    REQUIRE(!far.lender->asked.empty());
    CHECK(far.lender->ends.front() == far.lender->asked.front().offset + kTensor);
  }
}

TEST_CASE("a large file of tensors is streamed while it is fetched, from mapped memory") {
  Far far;
  const std::string path = far.near.dir / "large/model.safetensors";
  const auto tensor = random_bytes(12U << 20U, 1);
  const std::string whole = safetensors_file({{"one", "U8", {tensor.size()}, tensor}});
  write_file(path, whole);
  far.near.publish({far.near.dir / "large"}, "model");
  far.mirror();
  const auto attr = far.find("models/model/2/model.safetensors");
  const auto view = far.find("tensors/model/2/one.npy");
  REQUIRE((attr.ok() && view.ok()));
  FileLender lender(path);
  VfsOptions options;
  options.cold = &lender;
  options.cold_policy = ColdPolicy::stream;
  const auto vfs = Vfs::make(*far.store, options);
  CHECK((*vfs->open(view->ino))->mode() == ReadMode::cached);
  const auto small = *far.vfs->open(far.find("models/model/1/model.safetensors")->ino);
  CHECK(small->mode() == ReadMode::cached);
  const auto file = *vfs->open(attr->ino);
  REQUIRE(file->mode() == ReadMode::streamed);
  std::string got;
  constexpr std::size_t kStep = (1U << 20U) + 1000;
  for (std::uint64_t at = 0; at < whole.size(); at += kStep) {
    const auto parts = file->in_memory(at, kStep);
    REQUIRE_MESSAGE(parts.ok(), (parts.ok() ? "" : parts.error().message));
    REQUIRE_FALSE(parts->empty());
    for (const auto part : *parts) got += as_text(part);
  }
  CHECK(got == whole);
  CHECK(file->in_memory(whole.size(), 1)->empty());
  const auto failing = *vfs->open(attr->ino);
  lender.answers = Error{Errc::unreachable, "the cable is out"};
  const auto refused = failing->in_memory(0, 1000);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Errc::io);
}

TEST_CASE("a completely fetched file is read by passthrough, also if several answers brought it") {
  Far far;
  const std::string path = far.near.dir / "large/model.safetensors";
  const auto tensor = random_bytes(40U << 20U, 1);
  write_file(path, safetensors_file({{"one", "U8", {tensor.size()}, tensor}}));
  far.near.publish({far.near.dir / "large"}, "model");
  far.mirror();
  const auto attr = far.find("models/model/2/model.safetensors");
  REQUIRE(attr.ok());
  FileLender lender(path);
  VfsOptions options;
  options.cold = &lender;
  options.cold_policy = ColdPolicy::fetch;
  const auto vfs = Vfs::make(*far.store, options);
  const auto file = vfs->open(attr->ino);
  REQUIRE(file.ok());
  CHECK(lender.brings > 1);
  REQUIRE((*file)->backing_fd() >= 0);
  std::vector<std::byte> bytes(tensor.size());
  REQUIRE(read_exact((*file)->backing_fd(), attr->size - tensor.size(), bytes, path).ok());
  CHECK(std::ranges::equal(bytes, tensor));
}

TEST_CASE("the last bytes that passed stay for the next read; a pack that the daemon has emptied is fetched again") {
  Far far;
  const std::string path = far.near.dir / "passing/model.safetensors";
  const auto tensor = random_bytes(5U << 20U, 1);
  write_file(path, safetensors_file({{"one", "U8", {tensor.size()}, tensor}}));
  far.near.publish({far.near.dir / "passing"}, "model");
  far.mirror();
  const auto attr = far.find("models/model/2/model.safetensors");
  REQUIRE(attr.ok());
  const std::string whole = read_text(path);
  PassingLender lender(whole);
  VfsOptions options;
  options.cold = &lender;
  options.cold_policy = ColdPolicy::stream;
  const auto vfs = Vfs::make(*far.store, options);
  const auto file = *vfs->open(attr->ino);
  const auto read = [&](std::uint64_t offset) -> Result<std::string> {
    std::vector<std::byte> bytes(1000);
    WEFT_TRY(const std::size_t got, file->read(offset, bytes));
    return std::string(as_text(std::span(bytes).first(got)));
  };
  const std::uint64_t border = PassingLender::kChunk;
  CHECK(read(border - 500).value() == whole.substr(border - 500, 1000));
  CHECK(read(border + 500).value() == whole.substr(border + 500, 1000));
  CHECK(lender.brings == 1);
  lender.emptied = 2;
  CHECK(read(3 * border).value() == whole.substr(3 * border, 1000));
  CHECK(lender.brings == 4);
  lender.emptied = 1000;
  CHECK(read(5 * border).error().code == Errc::io);
  CHECK(lender.brings < 100);
  lender.emptied = 0;
  CHECK(read(5 * border).value() == whole.substr(5 * border, 1000));
  std::vector<std::byte> all(whole.size());
  CHECK(file->read(0, all).value() == whole.size());
  CHECK(as_text(all) == whole);
}

TEST_CASE("without a policy of its own a mount follows what is advised, from one open to the next") {
  const Far far(std::nullopt);
  const std::uint64_t size = read_text(far.near.dir / "source/model.safetensors").size();
  const auto asked_for = [&far](ColdPolicy policy) {
    far.lender->advised.policy = policy;
    far.lender->asked.clear();
    CHECK(far.read("models/model/1/model.safetensors", 9000, 100).ok());
    std::uint64_t bytes = 0;
    for (const Range& range : far.lender->asked) bytes += range.length;
    return bytes;
  };
  CHECK(asked_for(ColdPolicy::stream) == 100);
  CHECK(asked_for(ColdPolicy::fetch) == size);
  CHECK(asked_for(ColdPolicy::automatic) == size);  // the file is small
}

TEST_CASE("a file that the node has no space to keep is streamed, whatever the policy") {
  const Far far(ColdPolicy::fetch);
  far.lender->advised.keeps = 1000;
  const std::string whole = read_text(far.near.dir / "source/model.safetensors");
  CHECK(far.read("models/model/1/model.safetensors", 9000, 100).value() == whole.substr(9000, 100));
  std::uint64_t bytes = 0;
  for (const Range& range : far.lender->asked) bytes += range.length;
  CHECK(bytes == 100);
}

TEST_CASE("a failed fetch is Errc::io with the reason") {
  const Far far;
  REQUIRE(far.find("models/model/1/model.safetensors").ok());
  far.lender->answers = Error{Errc::unreachable, "the cable is out"};
  const auto got = far.read("models/model/1/model.safetensors");
  REQUIRE(!got.ok());
  CHECK(got.error().code == Errc::io);
  CHECK(got.error().message.find("the cable is out") != std::string::npos);
  far.lender->answers = {};
  CHECK(far.read("models/model/1/model.safetensors").ok());
}

TEST_CASE("a bare version is resolved before its manifest is read, and only then") {
  const Far far;
  const auto row = must(resolve_version(*must(far.store->snapshot()), "model"));
  const auto none = load_manifest(*far.store, no_resolver(), row);
  REQUIRE(!none.ok());
  CHECK(none.error().code == Errc::absent);
  CHECK(none.error().message == "model@1: its manifest is not on this node");
  CHECK(load_manifest(*far.store, *far.lender, row).ok());
  CHECK(load_manifest(*far.store, no_resolver(), row).ok());
  CHECK(far.lender->resolved == 1);
}

TEST_CASE("without anybody to ask, absent manifests and bytes say what they are") {
  const Far far(ColdPolicy::stream, false);
  const auto got = far.find("models/model/1/model.safetensors");
  REQUIRE(!got.ok());
  CHECK(got.error().code == Errc::absent);
  REQUIRE(far.lender->resolve(far.store->snapshot().value()->bare_versions(0, 1).value().front()).ok());
  const auto read = far.read("models/model/1/model.safetensors");
  REQUIRE(!read.ok());
  CHECK(read.error().code == Errc::absent);
}

}  // namespace weft::testing
