// The pack side, as little of it as the index needs: tables of contents that the tests wrote.
#include <sstream>

#include <fmt/core.h>

#include "base/sys.h"
#include "store/packs.h"
#include "testing.h"

namespace weft {

Packs::Packs(std::string store_path, DigestMode digest, IndexAccess& index)
    : path_(std::move(store_path)), digest_(digest), index_(index) {
  static_cast<void>(digest_);
  static_cast<void>(index_);
}

Result<std::shared_ptr<const PackReader>> Packs::open(PackId) {
  return Error{Errc::internal, "fake"};
}
Result<LockedPlace> Packs::lock_blob(const ContentId&) {
  return Error{Errc::internal, "fake"};
}

Result<std::vector<PackId>> Packs::list() {
  WEFT_TRY(std::vector<std::string> names, list_directory(path_ + "/packs"));
  std::vector<PackId> ids;
  for (const std::string& name : names)
    if (name.ends_with(".toc")) ids.push_back(std::stoull(name, nullptr, 16));
  return ids;
}

Result<PackToc> Packs::toc(PackId pack) {
  std::string path = fmt::format("{}/packs/{:016x}.toc", path_, pack);
  WEFT_CHECK(stat_file(path));
  std::istringstream text(testing::read_text(path));
  PackToc toc;
  toc.pack = pack;
  PackEntry entry;
  std::string root;
  while (text >> entry.id.length >> entry.id.xxh.high >> entry.id.xxh.low >> root >> entry.offset) {
    entry.id.root = digest_from_hex(root).value();
    toc.entries.push_back(entry);
    toc.size = entry.offset + entry.id.length;
  }
  return toc;
}

Result<std::unique_ptr<PackImport>> PackImport::begin(const std::string&, DigestMode, IndexAccess&) {
  return Error{Errc::internal, "fake"};
}

// Forgets dead blobs and rewrites what named them.
Status collect_packs(Packs& packs, const std::string& store_path, IndexAccess& index, const GcOptions& options,
                     Progress&, GcReport& report) {
  WEFT_TRY(std::vector<PackId> ids, packs.list());
  for (PackId id : ids) {
    WEFT_TRY(PackToc toc, packs.toc(id));
    WEFT_TRY(std::unique_ptr<BlobWriter> writer, index.write());
    std::string kept;
    for (const PackEntry& entry : toc.entries) {
      WEFT_TRY(bool held, writer->is_held(entry.id));
      if (held) {
        kept += fmt::format("{} {} {} {} {}\n", entry.id.length, entry.id.xxh.high, entry.id.xxh.low,
                            to_hex(entry.id.root), entry.offset);
        continue;
      }
      ++report.blobs_freed;
      WEFT_CHECK(writer->erase(entry.id));
    }
    if (options.dry_run) continue;
    WEFT_CHECK(writer->commit());
    testing::write_file(fmt::format("{}/packs/{:016x}.toc", store_path, id), kept);
  }
  return {};
}

Status verify_packs(Packs&, IndexAccess&, bool, Progress&, FsckReport&) {
  return {};
}

}  // namespace weft
