#include "vfs/assembly.h"

#include <utility>

#include "base/log.h"

namespace weft {

Result<std::shared_ptr<Assembly>> VfsAssembly::make(const AssemblyOptions& options, std::function<void(Ino)> tell) {
  if (options.bytes_max == 0U) return Error{Errc::unsupported, "assembly_cache_max=0"};
  auto packs = assembled_packs(store_, options.bytes_max);
  if (packs->writable()) WEFT_CHECK(packs->sweep(nullptr, false));
  return std::make_shared<Assembly>(store_, std::move(packs), std::move(tell));
}

void VfsAssembly::start(const AssemblyOptions& options, std::function<void(Ino)> tell) {
  auto made = make(options, std::move(tell));
  if (!made.ok()) return start_nothing(made.error().message);
  const std::lock_guard lock(mutex_);
  assembly_ = std::move(made).value();
}

void VfsAssembly::start_nothing(std::string reason) {
  log_info("no files are assembled: {}", reason);
  const std::lock_guard lock(mutex_);
  reason_ = std::move(reason);
}

// Keeps assembly_: open files and their requests may outlast stop().
void VfsAssembly::stop() {
  const auto assembly = current();
  if (assembly) assembly->stop();
}

std::shared_ptr<Assembly> VfsAssembly::current() const {
  const std::lock_guard lock(mutex_);
  return assembly_;
}

// A file that is a pack of its own is not assembled, so no assembled file is searched for.
Result<std::shared_ptr<OpenFile>> VfsAssembly::open(const PublishedFile& file, Remembered known,
                                                    Prefetcher* prefetcher) {
  const AssembledSource& source = *file.source;
  const ReadAhead ahead{prefetcher, file.borders};
  const auto assembly = source.size >= kAssembledFileMin ? current() : nullptr;
  const bool had_pack = file.has_pack.load(std::memory_order_relaxed);
  if (assembly && !had_pack)
    if (auto assembled = assembly->open(source, ahead)) return assembled;
  WEFT_TRY(auto composed, open_blobs(store_, source.where, "", source.blobs, ahead, known));
  const bool has_pack = composed->backing_fd() >= 0;
  file.has_pack.store(has_pack, std::memory_order_relaxed);
  if (had_pack && !has_pack) return open(file, known, prefetcher);
  if (!assembly || has_pack) return composed;
  return Assembly::watch(assembly, std::move(composed), file.source, known.file);
}

bool VfsAssembly::has(const AssembledSource& source) const {
  const auto assembly = current();
  return assembly && assembly->has(source);
}

void VfsAssembly::write_status(JsonWriter& json) const {
  const auto assembly = current();
  json.key("assembly").begin_object().member("state", assembly ? "on" : "off");
  if (assembly) {
    assembly->write_status(json);
  } else {
    const std::lock_guard lock(mutex_);
    json.member("reason", reason_);
  }
  json.end_object();
}

}  // namespace weft
