// A store and a snapshot of which each call returns Errc::unsupported. A fake overrides the calls that its tests need.
#pragma once

#include "weft/model/arch_match.h"
#include "weft/store/commits.h"
#include "weft/store/fsck.h"
#include "weft/store/gc.h"
#include "weft/store/publish.h"
#include "weft/store/scrub.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"

namespace weft::testing {

inline Error stubbed() {
  return {Errc::unsupported, "a call that the fake does not have"};
}

class StubStore : public Store {
 public:
  Result<std::unique_ptr<Snapshot>> snapshot() override { return stubbed(); }
  Result<IndexState> state() override { return stubbed(); }
  Result<StoreCounts> counts() override { return stubbed(); }
  Result<std::uint64_t> open_removed() override { return stubbed(); }
  Result<VersionId> keeper(const InodeRow&) override { return stubbed(); }
  Result<CommitBatch> commits(std::uint64_t) override { return stubbed(); }
  Result<std::unique_ptr<CommitWatch>> watch_commits() override { return stubbed(); }
  Result<OpenPlace> open_blob(const ContentId&) override { return stubbed(); }
  Result<OpenPlace> open_place(const ContentId&, const BlobPlace&) override { return stubbed(); }
  Result<std::shared_ptr<const ManifestReader>> open_manifest(const Digest&) override { return stubbed(); }
  Result<VersionHold> hold_version(VersionId) override { return stubbed(); }
  Result<std::vector<VersionHold>> take_over_holds(std::span<const VersionId>) override { return stubbed(); }
  Result<std::unique_ptr<Import>> begin_import(Durability) override { return stubbed(); }
  Status set_tag(std::string_view, std::string_view, std::optional<std::uint64_t>, const Author&) override {
    return stubbed();
  }
  Status describe(std::string_view, std::uint64_t, const DescriptionChange&) override { return stubbed(); }
  Status protect_tag(std::string_view, std::string_view, bool, const Author&) override { return stubbed(); }
  Status rename_model(std::string_view, std::string_view, const Author&) override { return stubbed(); }
  Result<std::size_t> remove_versions(std::span<const VersionName>, Tagged, const Author&) override {
    return stubbed();
  }
  Result<UndeletedVersion> undelete(std::string_view, std::uint64_t, const Author&) override { return stubbed(); }
  Status pin(std::string_view, std::uint64_t, bool) override { return stubbed(); }
  Result<GcReport> gc(const GcOptions&, Progress&) override { return stubbed(); }
  Result<FsckReport> fsck(const FsckOptions&, const ContentDecoder&, Progress&) override { return stubbed(); }
  Result<std::unique_ptr<BlobRepair>> begin_repair() override { return stubbed(); }
  Result<ScrubReport> scrub(const ScrubOptions&, Progress&) override { return stubbed(); }
};

// Its counters are 0.
class StubSnapshot : public Snapshot {
 public:
  using From = std::string_view;

  IndexState state() const override { return {}; }
  std::uint64_t sequence() const override { return 0; }
  std::uint64_t lineage_clock() const override { return 0; }
  std::uint64_t last_rename() const override { return 0; }
  std::uint64_t journal_end() const override { return 0; }
  Result<ModelRow> model(std::string_view) override { return stubbed(); }
  Result<ModelRow> model(ModelId) override { return stubbed(); }
  Result<std::optional<ModelRow>> renamed(std::string_view) override { return stubbed(); }
  Result<Page<ModelRow>> models(From, std::string_view, std::size_t) override { return stubbed(); }
  Result<Page<NamespaceEntry>> namespace_entries(std::string_view, From, std::size_t) override { return stubbed(); }
  Result<NamespaceEntry> namespace_entry(std::string_view, std::string_view) override { return stubbed(); }
  Result<VersionRow> version(VersionId) override { return stubbed(); }
  Result<VersionRow> version(ModelId, std::uint64_t) override { return stubbed(); }
  Result<Page<VersionRow>> versions(ModelId, From, std::size_t) override { return stubbed(); }
  Result<std::optional<VersionId>> with_revision(ModelId, std::string_view) override { return stubbed(); }
  Result<Page<VersionId>> distinct(ModelId, From, std::size_t) override { return stubbed(); }
  Result<Page<TagRow>> tags(ModelId, From, std::size_t) override { return stubbed(); }
  Result<TagRow> tag(ModelId, std::string_view) override { return stubbed(); }
  Result<Page<TagMove>> tag_moves(ModelId, From) override { return stubbed(); }
  Result<Page<std::string>> tags_of(ModelId, std::uint64_t, From) override { return stubbed(); }
  Result<Page<VersionId>> children(VersionId, From, std::size_t) override { return stubbed(); }
  Result<LocalRow> local(VersionId) override { return stubbed(); }
  Result<std::uint64_t> owned_bytes(VersionId, std::uint32_t) override { return stubbed(); }
  Result<Page<std::uint64_t>> owned_by_files(VersionId, From) override { return stubbed(); }
  Result<InodeRow> inode(Ino) override { return stubbed(); }
  Result<BlobPlace> find_blob(const ContentId&) override { return stubbed(); }
  Result<std::vector<std::pair<VersionId, std::uint32_t>>> some_holders(const ContentId&, std::size_t) override {
    return stubbed();
  }
  Result<std::optional<std::pair<VersionId, std::uint32_t>>> owner(const ContentId&) override { return stubbed(); }
  Result<std::vector<MatchHit>> match(const MatchQuery&) override { return stubbed(); }
  std::uint64_t registry_revision() const override { return 0; }
  Result<bool> is_bare(VersionId) override { return stubbed(); }
  Result<std::vector<VersionId>> bare_versions(VersionId, std::size_t) override { return stubbed(); }
  Result<std::vector<VersionId>> unsaved(VersionId, std::size_t) override { return stubbed(); }
  Result<Durability> durability(const VersionRow&) override { return stubbed(); }
  Result<std::vector<VersionId>> in_memory(VersionId, std::size_t) override { return stubbed(); }
  Result<std::vector<VersionId>> pinned(VersionId, std::size_t) override { return stubbed(); }
  Result<std::vector<VersionId>> unreaped(VersionId, std::size_t) override { return stubbed(); }
  Result<std::vector<std::pair<VersionId, std::uint64_t>>> purged() override { return stubbed(); }
};

}  // namespace weft::testing
