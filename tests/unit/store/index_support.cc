#include "index_support.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/sha256.h"
#include "base/text.h"
#include "diskformat/hash.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "os/sys.h"
#include "packs/assembled.h"
#include "store/publishing/publish_steps.h"
#include "store_paths.h"

namespace weft::testing {
std::vector<std::byte> content_bytes(unsigned n) {
  return random_bytes(1000 + n, n);
}

ContentId content_id(unsigned n) {
  thread_local std::map<unsigned, ContentId> ids;
  auto [found, made] = ids.try_emplace(n);
  if (!made) return found->second;
  auto bytes = content_bytes(n);
  found->second = {bytes.size(), tree_sha256(bytes)};
  return found->second;
}

namespace {

// Returns one chain of items per file. Chains of files with equal beginnings share the items of that beginning.
std::vector<ArchItem> make_architecture(const Files& files) {
  std::vector<ArchItem> items;
  std::map<std::string, std::uint32_t> known;
  std::vector<std::string> chains(files.size());
  bool more = true;
  for (std::size_t level = 0; std::exchange(more, false); ++level) {
    for (std::size_t file = 0; file < files.size(); ++file) {
      if (level >= files[file].size()) continue;
      more = true;
      std::string before = chains[file];
      chains[file] += fmt::format("{} ", files[file][level]);
      auto [at, made] = known.try_emplace(chains[file], static_cast<std::uint32_t>(items.size()));
      if (!made) continue;
      ArchItem& item = items.emplace_back(ArchItem{sha256(as_bytes(chains[file])), {}});
      if (level > 0) item.inputs = {known.at(before)};
    }
  }
  return items;
}

}  // namespace

VersionContent make_content(const Files& files) {
  VersionContent content;
  for (const auto& file : files) {
    auto& out = content.files.emplace_back();
    std::uint64_t offset = 0;
    for (unsigned n : file) {
      out.extents.push_back({offset, content_id(n), head_of(content_bytes(n))});
      offset += content_id(n).length;
      content.logical_bytes += 1000 + n;
      content.views.push_back({content_id(n), DType::u8, {1000 + n}, ""});
    }
  }
  content.architecture = make_architecture(files);
  content.tree_nodes = 10 + content.views.size();
  return content;
}

std::vector<std::byte> manifest_of(const Files& files) {
  std::string text;
  for (const auto& file : files) text += fmt::format("{}\n", fmt::join(file, " "));
  auto bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

Result<VersionContent> decode(std::span<const std::byte> manifest) {
  Files files;
  std::istringstream lines{std::string(as_text(manifest))};
  for (std::string line; std::getline(lines, line);) {
    auto& file = files.emplace_back();
    std::istringstream numbers(line);
    for (unsigned n = 0; numbers >> n;) file.push_back(n);
  }
  return make_content(files);
}

OpenOptions write_options() {
  OpenOptions options;
  options.write = true;
  options.decode = decode;
  options.map_bytes = 1U << 20U;
  options.reader_wait_ms = 5'000;
  return options;
}

std::unique_ptr<StoreImpl> open_store(const std::string& path, const OpenOptions& options, CommitHooks hooks) {
  return must(StoreImpl::open(path, options, std::move(hooks)));
}

namespace {

std::vector<unsigned> new_contents(StoreParts& store, const Files& files) {
  std::set<unsigned> all;
  for (const auto& file : files) all.insert(file.begin(), file.end());
  auto index = must(store.blobs.read());
  std::vector<unsigned> fresh;
  for (unsigned n : all)
    if (!must(index->find(content_id(n)))) fresh.push_back(n);
  return fresh;
}

// Writes the contents that the store lacks into a new pack.
std::vector<NewBlob> write_pack(StoreParts& store, const Files& files) {
  PackToc toc;
  toc.pack = new_pack_id(PackKind::blobs);
  std::string bytes;
  std::vector<NewBlob> blobs;
  for (unsigned n : new_contents(store, files)) {
    auto content = content_bytes(n);
    toc.entries.push_back({content_id(n), bytes.size(), {sha256(content)}});
    blobs.push_back({content_id(n), {toc.pack, bytes.size()}});
    bytes += as_text(content);
  }
  if (blobs.empty()) return blobs;
  toc.size = bytes.size();
  if (!write_toc(toc_path(store.path.str(), toc.pack), toc).ok()) throw std::runtime_error("write_toc");
  // Renames the complete pack into place, as packs appear in a store.
  const std::string unplaced = fmt::format("{}/tmp/{:x}", store.path.str(), toc.pack);
  write_file(unplaced, bytes);
  std::filesystem::rename(unplaced, pack_path(store.path.str(), toc.pack));
  return blobs;
}

}  // namespace

Result<PublishOutcome> publish_blobs(StoreParts& parts, const PublishRequest& request,
                                     const std::vector<NewBlob>& blobs) {
  const Digest manifest = sha256(request.manifest);
  auto outcome = weft::publish(parts, request, manifest, [&]() -> Result<Placed> {
    WEFT_TRY(WriterLock lock, parts.index.lock());
    WEFT_CHECK(parts.manifests.put(manifest, request.manifest));
    return Placed{std::move(lock), blobs};
  });
  if (!outcome.ok() || !outcome->made) discard(parts, blobs);
  return outcome;
}

Result<PublishOutcome> publish(StoreParts& store, std::string_view model, const Files& files, const PublishArgs& args) {
  PublishRequest request;
  request.model = model;
  request.manifest = manifest_of(files);
  request.content = make_content(files);
  request.parents = args.parents;
  request.elsewhere = args.elsewhere;
  request.tags = args.tags;
  request.message = args.message;
  request.source.commit = args.source_commit;
  request.metrics = {{"loss", "0.5"}};
  return publish_blobs(store, request, write_pack(store, files));
}

Result<PublishOutcome> publish(StoreImpl& store, std::string_view model, const Files& files, const PublishArgs& args) {
  return publish(store.parts(), model, files, args);
}

PublishOutcome must_publish(StoreImpl& store, std::string_view model, const Files& files, const PublishArgs& args) {
  return must(publish(store, model, files, args));
}

namespace {

void dump_version(std::string& out, Snapshot& snapshot, const VersionRow& row, bool local) {
  out += fmt::format(" version {} {}@{} {} time {} bytes {} removed {} {} children {}\n", row.id, row.model_name,
                     row.number, to_hex(row.manifest), row.time_ns, row.logical_bytes, row.removed, row.removed_ns,
                     must(snapshot.children(row.id)).rows);
  out += fmt::format("  {} {} {}\n", row.message, row.source.commit, row.metrics.size());
  out += fmt::format("  born {} died {} tensors {} {} elsewhere {}\n", row.born, row.died, row.tensors,
                     row.tensor_bytes, fmt::join(row.elsewhere, " "));
  for (const ParentRef& parent : row.parents)
    out += fmt::format("  parent {}@{} {} {} {} {}\n", parent.model, parent.number, parent.id, parent.declared,
                       parent.same_tensors, parent.same_bytes);
  out += fmt::format("  publisher {}{}\n", row.publisher, must(snapshot.is_bare(row.id)) ? " bare" : "");
  auto here = snapshot.local(row.id);
  if (!here.ok() || (row.removed && !local)) return;
  out += fmt::format("  local {} {} {}\n", here->ino_base, here->ino_count, here->view_inos);
  for (std::uint32_t file = 0;; ++file) {
    auto owned = snapshot.owned_bytes(row.id, file);
    if (!owned.ok() || row.removed) break;
    out += fmt::format("  owned {} {}\n", file, *owned);
  }
}

void dump_model(std::string& out, Snapshot& snapshot, const ModelRow& model, bool local) {
  out += fmt::format("model {} {} next {} latest {} inos {} {} created {} changed {}\n", model.id, model.name,
                     model.next_number, model.latest, model.ino, model.latest_ino, model.created_ns, model.changed_ns);
  out += fmt::format(" distinct {}\n", must(snapshot.distinct(model.id)).rows);
  for (const TagRow& tag : must(snapshot.tags(model.id)).rows)
    out += fmt::format(" tag {} {} {} {} {}\n", tag.name, tag.number, tag.ino, tag.time_ns, tag.owner);
  for (const TagMove& move : must(snapshot.tag_moves(model.id)).rows)
    out += fmt::format(" move {} {} {} {} {} {}\n", move.name, move.before, move.number, move.time_ns, move.by.user,
                       move.by.node);
  for (const VersionRow& row : must(snapshot.versions(model.id)).rows) dump_version(out, snapshot, row, local);
}

void dump_names(std::string& out, Snapshot& snapshot, const std::string& prefix) {
  for (const NamespaceEntry& entry : must(snapshot.namespace_entries(prefix)).rows) {
    std::string path = prefix.empty() ? entry.component : prefix + "/" + entry.component;
    out += fmt::format("name {} {} {}\n", path, entry.is_model, entry.ino);
    if (!entry.is_model) dump_names(out, snapshot, path);
  }
}

void dump_inodes(std::string& out, Snapshot& snapshot, bool local) {
  std::vector<Ino> inos{kModelsIno, kHubIno};
  for (Ino ino = kFirstStoredIno; ino < kFirstStoredIno + 2000; ++ino) inos.push_back(ino);
  for (const Ino ino : inos) {
    auto inode = snapshot.inode(ino);
    if (!inode.ok() && inode.error().code != Errc::not_found) throw std::runtime_error(inode.error().message);
    if (!inode.ok()) continue;
    if (!local && inode->kind == InodeKind::view && inode->view_links == 0) continue;
    if (!local && inode->kind == InodeKind::version && must(snapshot.version(inode->version)).removed) continue;
    out += fmt::format("inode {} {} {} {} {} {} {} {} {} changed {}\n", ino, static_cast<int>(inode->kind), inode->base,
                       inode->count, inode->model, inode->version, inode->name, inode->view_links, inode->view_time_ns,
                       inode->changed_ns);
    if (inode->kind == InodeKind::view) out += fmt::format(" first {}\n", inode->view_first);
  }
}

}  // namespace

void assemble(const std::string& store_path, const std::vector<unsigned>& contents, PackId id) {
  AssembledSource file{id, 0, {}, "a file"};
  std::vector<std::byte> bytes;
  std::vector<PackEntry> entries;
  for (const unsigned n : contents) {
    const auto content = content_bytes(n);
    file.blobs.push_back(content_id(n));
    entries.push_back({content_id(n), bytes.size(), {sha256(content)}});
    bytes.insert(bytes.end(), content.begin(), content.end());
  }
  file.size = bytes.size();
  AssembledPacks packs(safe(store_path));
  AssembledPart part = must(packs.begin(file, 0));
  must(write_exact(part.writer->fd(), 0, bytes, "part"));
  must(packs.finish(std::move(part), std::move(entries)));
}

std::string dump(Store& store, bool local) {
  auto snapshot = must(store.snapshot());
  std::string out;
  for (const ModelRow& model : must(snapshot->models()).rows) dump_model(out, *snapshot, model, local);
  dump_names(out, *snapshot, "");
  dump_inodes(out, *snapshot, local);
  for (unsigned n = 0; n < 200; ++n) {
    const auto holders = must(snapshot->some_holders(content_id(n), 1000));
    auto place = snapshot->find_blob(content_id(n));
    if (!place.ok() && place.error().code == Errc::not_found) continue;
    if (!place.ok() && place.error().code != Errc::absent) throw std::runtime_error(place.error().message);
    out += place.ok() ? fmt::format("blob {} {:x} {}", n, place->pack, place->offset) : fmt::format("absent {}", n);
    for (auto [version, file] : holders) out += fmt::format(" {}:{}", version, file);
    out += "\n";
  }
  out += fmt::format("pinned {} unsaved {} bare {}\n", must(snapshot->pinned(0, SIZE_MAX)),
                     must(snapshot->unsaved(0, SIZE_MAX)), must(snapshot->bare_versions(0, SIZE_MAX)));
  out += fmt::format("lineage clock {}\n", snapshot->lineage_clock());
  StoreCounts counts = must(store.counts());
  return out + fmt::format("counts {} {} {} {} {} {} {}\n", counts.models, counts.versions, counts.tags, counts.blobs,
                           counts.views, counts.blob_bytes, counts.dead_bytes);
}

bool readable(const CommitWatch& watch) {
  pollfd event{watch.fd(), POLLIN, 0};
  return ::poll(&event, 1, 0) == 1;
}

int in_child(const std::function<bool()>& body) {
  pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) {
    int code = 1;
    try {
      code = body() ? 0 : 1;
    } catch (const std::exception& error) {
      fmt::print(stderr, "child: {}\n", error.what());
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

bool exited(int status, int code) {
  return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

bool mount_tmpfs(const std::string& path, std::uint64_t bytes) {
  if (::unshare(CLONE_NEWNS) != 0) return false;
  // In a chroot "/" is no mount point, hence EINVAL. The mount above it is not ours to change.
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 && errno != EINVAL) return false;
  return ::mount("tmpfs", path.c_str(), "tmpfs", 0, fmt::format("size={}", bytes).c_str()) == 0;
}

TestStore::TestStore() : path(dir / "store") {
  Status status = Store::create(path, {});
  if (!status.ok()) throw std::runtime_error(status.error().message);
}

}  // namespace weft::testing
