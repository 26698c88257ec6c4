#include "daemon_api/audit_entries.h"

#include <doctest/doctest.h>

namespace weft::testing {
namespace {

std::string line(const AuditEntry& entry) {
  return entry.action.empty() ? "none" : entry.action + ": " + entry.object;
}

const Nothing kDone;

TEST_CASE("a change has the object that was changed, and a denied one the object that was asked for") {
  ImportRequest import;
  import.options.name = "org/m";
  ImportReport report;
  report.outcome.version.model_name = "org/m";
  report.outcome.version.number = 3;
  report.outcome.made = true;
  CHECK(line(audit_entry(report.outcome)) == "publish: org/m@3");
  report.outcome.made = false;
  CHECK(line(audit_entry(report.outcome)) == "publish-again: org/m@3");
  CHECK(line(audit_entry(import, &report)) == "none");  // the publish has its line already
  CHECK(line(audit_entry(import, nullptr)) == "publish: org/m");

  const VersionName third{"m", 3};
  CHECK(line(audit_entry(TagRequest{"m", "best"}, &third)) == "tag: m@3 best");
  CHECK(line(audit_entry(TagRequest{"m", "best", true}, &third)) == "untag: m@best");
  CHECK(line(audit_entry(NoteRequest{"m", {}}, &third)) == "note: m@3");
  TagRequest tag{"m", "prod", false, true};
  const VersionName tagged{"m", 3};
  CHECK(line(audit_entry(tag, &tagged)) == "protect: m@prod");
  tag = {"m", "prod", false, false, true};
  CHECK(line(audit_entry(tag, nullptr)) == "unprotect: m@prod");
  BundleImportReport brought;
  brought.uuid = "5c";
  CHECK(line(audit_entry(BundleImportRequest{}, &brought)) == "import-bundle: 5c");
  const NodeRemoveReport forgotten{"id", "n3", {}};
  CHECK(line(audit_entry(NodeRemoveRequest{"id"}, &forgotten)) == "remove-node: n3");
  CHECK(line(audit_entry(NodeDrainRequest{"n3"}, nullptr)) == "drain: n3");
  CHECK(line(audit_entry(NoteRequest{"m@latest", {}}, nullptr)) == "note: m@latest");
  CHECK(line(audit_entry(RenameRequest{"m", "n"}, &kDone)) == "rename: m n");
  CHECK(line(audit_entry(PinRequest{"m@1", true}, &kDone)) == "pin: m@1");
  CHECK(line(audit_entry(PinRequest{"m@1", false}, &kDone)) == "unpin: m@1");
  const FetchReport fetched;
  CHECK(line(audit_entry(PrefetchRequest{"m@1", ""}, &fetched)) == "prefetch: m@1");
  const HandOverReport handed;
  CHECK(line(audit_entry(StageOutRequest{"m@1"}, &handed)) == "stage-out: m@1");
  CHECK(line(audit_entry(StageOutRequest{"", true}, &handed)) == "hand-over: ");
  CHECK(line(audit_entry(StageOutRequest{"", true, true}, &handed)) == "new-origin: ");
}

TEST_CASE("removals that were done have lines of their own, and dry runs have none") {
  RemoveRequest remove;
  remove.specs = {"m@1", "n@2"};
  const RemoveReport removed;
  CHECK(line(audit_entry(remove, &removed)) == "none");
  CHECK(line(audit_entry(remove, nullptr)) == "remove: m@1 n@2");
  CHECK(line(audit_entry(UndeleteRequest{{"m@1"}}, &kDone)) == "none");
  CHECK(line(audit_entry(UndeleteRequest{{"m@1"}}, nullptr)) == "undelete: m@1");
  PurgeRequest purge;
  purge.specs = {"m@1"};
  const PurgeReport purged;
  CHECK(line(audit_entry(purge, &purged)) == "none");
  CHECK(line(audit_entry(purge, nullptr)) == "purge: m@1");
  const OriginGcReport shrunk;
  CHECK(line(audit_entry(OriginGcRequest{0, false}, &shrunk)) == "gc-origin: ");
  CHECK(line(audit_entry(OriginGcRequest{0, true}, &shrunk)) == "none");
  OriginFsckReport healed;
  CHECK(line(audit_entry(OriginFsckRequest{true}, &healed)) == "none");
  healed.repaired = {"packs/1"};
  CHECK(line(audit_entry(OriginFsckRequest{true}, &healed)) == "repair-origin: ");
  GcOptions gc;
  const GcOutcome outcome;
  CHECK(line(audit_entry(gc, &outcome)) == "gc: ");
  gc.dry_run = true;
  CHECK(line(audit_entry(gc, &outcome)) == "none");
  CHECK(line(audit_entry(gc, nullptr)) == "gc: ");
  const ReconcileReport reconciled;
  CHECK(line(audit_entry(ReconcileWish{false}, &reconciled)) == "reconcile: ");
  CHECK(line(audit_entry(ReconcileWish{true}, &reconciled)) == "none");
  CHECK(line(audit_entry(ReconcileWish{true}, nullptr)) == "reconcile: ");
  const EvictReport evicted;
  CHECK(line(audit_entry(EvictRequest{"m@1", 0, false}, &evicted)) == "evict: m@1");
  CHECK(line(audit_entry(EvictRequest{"m@1", 0, true}, &evicted)) == "none");
}

TEST_CASE("requests that may make a part of their change and fail have a line then, but not their dry runs") {
  CHECK(may_change_and_fail(OriginGcRequest{0, false}));
  CHECK_FALSE(may_change_and_fail(OriginGcRequest{0, true}));
  CHECK(may_change_and_fail(OriginFsckRequest{true}));
  CHECK_FALSE(may_change_and_fail(OriginFsckRequest{false}));
  CHECK(may_change_and_fail(RestoreRequest{}));
  CHECK_FALSE(may_change_and_fail(PurgeRequest{}));
}

TEST_CASE("requests that change nothing have no line") {
  const PeerList peers;
  CHECK(line(audit_entry(Nothing{}, &peers)) == "none");
  CHECK(line(audit_entry(MayPublishRequest{}, static_cast<const Nothing*>(nullptr))) == "none");
}

}  // namespace
}  // namespace weft::testing
