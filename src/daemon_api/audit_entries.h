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

// Returns the entry of a request. The argument `done` is the answer, or null if the request was denied. A request that
// changes nothing has no entry, nor has a dry run that was done. The handlers of RemoveRequest, PurgeRequest and
// UndeleteRequest write a line for each object, so these requests have an entry only if they were denied.
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

}  // namespace weft
