// The entries of requests in the audit log (monitor/audit.h). Pure.
#pragma once

#include <string>

#include "daemon_api/control_messages.h"
#include "weft/programs/operations.h"

namespace weft {

struct AuditEntry {
  std::string action = {};  // "": there is no entry
  std::string object = {};  // "": the whole store
};

// Returns the entry of a request. The argument `done` is the answer, or null if the request was denied or failed. A
// request that changes nothing has no entry, nor has a dry run that was done. The handlers of ImportRequest,
// RemoveRequest, PurgeRequest and UndeleteRequest write a line for each object as soon as it is changed, so these
// requests have an entry only if they were denied.
template <class Request, class Answer>
AuditEntry audit_entry(const Request& /*request*/, const Answer* /*done*/) {
  return {};
}
AuditEntry audit_entry(const ImportRequest& request, const ImportReport* done);
AuditEntry audit_entry(const BundleImportRequest& request, const BundleImportReport* done);
AuditEntry audit_entry(const TagRequest& request, const VersionName* done);
AuditEntry audit_entry(const NoteRequest& request, const VersionName* done);
AuditEntry audit_entry(const RenameRequest& request, const Nothing* done);
AuditEntry audit_entry(const RemoveRequest& request, const RemoveReport* done);
AuditEntry audit_entry(const UndeleteRequest& request, const Nothing* done);
AuditEntry audit_entry(const GcOptions& request, const GcOutcome* done);
AuditEntry audit_entry(const PurgeRequest& request, const PurgeReport* done);
AuditEntry audit_entry(const OriginGcRequest& request, const OriginGcReport* done);
AuditEntry audit_entry(const OriginFsckRequest& request, const OriginFsckReport* done);
AuditEntry audit_entry(const PrefetchRequest& request, const FetchReport* done);
AuditEntry audit_entry(const PinRequest& request, const Nothing* done);
AuditEntry audit_entry(const EvictRequest& request, const EvictReport* done);
AuditEntry audit_entry(const StageOutRequest& request, const HandOverReport* done);
AuditEntry audit_entry(const RepairRequest& request, const Nothing* done);
AuditEntry audit_entry(const RestoreRequest& request, const RestoreReport* done);
AuditEntry audit_entry(const ReconcileWish& request, const ReconcileReport* done);
AuditEntry audit_entry(const NodeDrainRequest& request, const NodeDrainReport* done);
AuditEntry audit_entry(const NodeRemoveRequest& request, const NodeRemoveReport* done);
AuditEntry audit_entry(const RotateKeyRequest& request, const RotateKeyReport* done);

// Returns the entry of one publish, also of one for a bundle.
AuditEntry audit_entry(const PublishOutcome& done);

// True if the request may make a part of its change and then fail, and its handler writes no line of its own.
template <class Request>
bool may_change_and_fail(const Request& /*request*/) {
  return false;
}
bool may_change_and_fail(const OriginGcRequest& request);
bool may_change_and_fail(const OriginFsckRequest& request);
bool may_change_and_fail(const RestoreRequest& request);

}  // namespace weft
