#include "cluster_support.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <functional>
#include <stdexcept>

#include "base/sha256.h"
#include "os/sys.h"

namespace weft::testing {

MirroredVersion record(std::string_view model, std::uint64_t number, const Files& files) {
  VersionContent content = make_content(files);
  MirroredVersion change;
  VersionRow& version = change.version;
  version.model_name = model;
  version.number = number;
  version.manifest = sha256(manifest_of(files));
  version.time_ns = 1'000 + number;
  version.logical_bytes = content.logical_bytes;
  version.message = "by the registry";
  version.tensors = content.views.size();
  for (const auto& view : content.views) version.tensor_bytes += view.content.length;
  version.publisher = kElsewhere;
  std::memcpy(&version.uid, version.manifest.bytes.data(), sizeof version.uid);
  version.uid.low ^= number;
  version.uid.high ^= std::hash<std::string_view>{}(model);
  change.tree_nodes = content.tree_nodes;
  return change;
}

MirroredVersion tombstone(MirroredVersion version, std::uint64_t removed_ns) {
  version.version.removed = true;
  version.version.removed_ns = removed_ns;
  return version;
}

std::vector<std::string> mirror(ClusterStore& store, const std::vector<MirrorChange>& changes, std::uint64_t revision) {
  auto outcome = store.mirror().apply(changes, revision);
  if (!outcome.ok()) throw std::runtime_error(outcome.error().message);
  return outcome->problems;
}

Status adopt(ClusterStore& store, std::string_view model, std::uint64_t number, const Files& files) {
  return store.cache().adopt(std::vector<Adoption>{{std::string(model), number, manifest_of(files)}});
}

FetchedBlob fetched(unsigned content, std::uint64_t offset) {
  return {content_id(content), offset, {sha256(content_bytes(content))}};
}

void write_content(FetchPack& pack, unsigned content, std::uint64_t offset) {
  must(write_exact(pack.fd(), offset, content_bytes(content), "fetched"));
}

PackId fetch(ClusterStore& store, const std::vector<unsigned>& contents) {
  std::uint64_t size = 0;
  for (unsigned content : contents) size += content_id(content).length;
  auto pack = must(store.cache().fetch_pack(size));
  std::vector<FetchedBlob> blobs;
  std::uint64_t offset = 0;
  for (unsigned content : contents) {
    write_content(*pack, content, offset);
    blobs.push_back(fetched(content, offset));
    offset += content_id(content).length;
  }
  if (must(pack->add(blobs)) != contents.size()) throw std::runtime_error("fetched what is here");
  return pack->id();
}

void set_age(const std::string& path, std::uint64_t seconds) {
  const timespec at{static_cast<time_t>(now_ns() / 1'000'000'000 - seconds), 0};
  const timespec times[] = {at, at};
  if (::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) throw std::runtime_error("utimensat");
}

Result<std::unique_ptr<PreparedPublish>> prepare(ClusterStore& store, std::string_view model, const Files& files,
                                                 const std::vector<unsigned>& read, Durability durability) {
  WEFT_TRY(std::unique_ptr<Import> import, store.begin_import(durability));
  TempDir dir;
  for (unsigned content : read) {
    write_file(dir / "source", as_text(content_bytes(content)));
    WEFT_TRY(Fd fd, open_file(dir / "source", O_RDONLY));
    const Range all{0, content_id(content).length};
    WEFT_CHECK(import->add(fd.get(), "source", std::span(&all, 1), no_progress()));
  }
  PublishRequest request;
  request.model = model;
  request.manifest = manifest_of(files);
  request.content = make_content(files);
  request.message = "made by a test";
  return import->prepare(request);
}

TestCluster::TestCluster() : path(made.path) {
  open();
  Status status = store->mirror().join({"test", std::string(kHere)});
  if (!status.ok()) throw std::runtime_error(status.error().message);
}

void TestCluster::open(CommitHooks hooks) {
  auto opened = StoreImpl::open_as_daemon(path, write_options(), std::move(hooks));
  if (!opened.ok()) throw std::runtime_error(opened.error().message);
  store = std::move(opened).value();
}

}  // namespace weft::testing
