// The bodies of control messages between the command line and the daemon (control/message.h frames them). Each has one
// list of its members, fields(), which encode_fields() writes and decode_fields() reads. Bodies from the other end are
// hostile until they are decoded.
//
//   request    body             events                          answer
//   import     ImportRequest    ImportEvent, ProgressEvent      ImportReport
//   may_publish MayPublishRequest                               {}
//   claim      ClaimRequest     ClaimEvent                      none: it lasts until the client ends it
//   pulled     PulledRequest                                    PulledAnswer and a descriptor
//   bundle     BundleImportRequest BundleEvent, ProgressEvent   BundleImportReport
//   adopt      AdoptRequest     ProgressEvent                   AdoptReport
//   tag        TagRequest                                       VersionName
//   note       NoteRequest                                      VersionName
//   mv         RenameRequest                                    {}
//   rm         RemoveRequest    VersionName                     RemoveReport
//   purge      PurgeRequest     ProgressEvent                   PurgeReport
//   undelete   UndeleteRequest  UndeletedVersion                {}
//   gc         GcOptions        ProgressEvent                   GcOutcome
//   gc_origin  OriginGcRequest  ProgressEvent                   OriginGcReport
//   fsck_origin OriginFsckRequest ProgressEvent                 OriginFsckReport
//   prefetch   PrefetchRequest  ProgressEvent                   FetchReport
//   pin        PinRequest                                       {}
//   evict      EvictRequest                                     EvictReport
//   stage_out  StageOutRequest  ProgressEvent                   HandOverReport
//   repair     RepairRequest    ProgressEvent                   {}
//   restore    RestoreRequest   ProgressEvent                   RestoreReport
//   reconcile  ReconcileWish    ProgressEvent                   ReconcileReport
//   origin     {}                                               OriginReport
//   peers      {}                                               PeerList
//   rotate_key RotateKeyRequest                                 RotateKeyReport
//   health     HealthRequest                                    HealthReport (health.h)
//   node_drain NodeDrainRequest ProgressEvent                   NodeDrainReport
//   node_remove NodeRemoveRequest                               NodeRemoveReport
//   node_leave {}                                               {}
//   mount      MountFigures                                     {}
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/limits.h"
#include "drafts/old_drafts.h"
#include "publish/gather.h"
#include "weft/bytes/cold.h"
#include "weft/cluster/origin.h"
#include "weft/cluster/pulled.h"
#include "weft/cluster/registry.h"
#include "weft/programs/bundle.h"
#include "weft/programs/mount_figures.h"
#include "weft/programs/operations.h"
#include "weft/store/assembly.h"
#include "weft/store/gc.h"

namespace weft {

struct Nothing {};
inline void fields(JsonFields& /*f*/, Nothing& /*m*/) {}

struct ProgressEvent {
  std::string phase;
  std::uint64_t total = 0, done = 0;
  std::string held_by;  // the setting whose rate holds the work back now; "": none
};
inline void fields(JsonFields& f, ProgressEvent& m) {
  f("phase", m.phase)("total", m.total)("done", m.done)("held_by", m.held_by);
}

inline void fields(JsonFields& f, VersionName& m) {
  f("model", m.model)("version", m.number);
}

// Begins an import of `files` files. The client keeps their paths; the daemon asks for the files with ImportEvent.
struct ImportRequest {
  ImportOptions options;
  std::uint64_t files = 0;
};
void fields(JsonFields& f, ImportRequest& m);

// Bytes of the file with index `file`, which still arrives.
struct AwaitedBytes {
  std::uint64_t file = 0, offset = 0, length = 0;
};
inline void fields(JsonFields& f, AwaitedBytes& m) {
  f("file", m.file)("offset", m.offset, limits::kVersionBytesMax)("length", m.length, limits::kVersionBytesMax);
}

// `files`: asks for the list of files from this index on; the reply is encode_files(). `open`: asks for the descriptor
// of the file with this index; the reply has the descriptor, or is an OpenFailure. `await`: waits for bytes; the reply
// is an Arrived, after about a second at most. `removed`: reports a version of ImportReport::removed, which the answer
// does not list, because they may not fit into one message. Exactly one is set.
struct ImportEvent {
  std::optional<std::uint64_t> files{}, open{};
  std::optional<AwaitedBytes> await{};
  std::optional<VersionName> removed{};
};
void fields(JsonFields& f, ImportEvent& m);

struct OpenFailure {
  Error error;
};
void fields(JsonFields& f, OpenFailure& m);

// The result of AwaitBytes.
struct Arrived {
  std::uint64_t end = 0;
  std::optional<OpenFailure> failure{};
};
void fields(JsonFields& f, Arrived& m);

// Encodes as many files, from index `first` on, as one message holds; at least one.
std::string encode_files(std::span<const SourceFile> files, std::size_t first);
// Appends the decoded files to `files`. Errc::invalid: no file, or more than `count` files in all.
Status decode_files(const JsonValue& body, std::size_t count, std::vector<SourceFile>& files);

void shown_fields(JsonFields& f, ImportReport& m);  // the members that `weft import --json` prints
inline void fields(JsonFields& f, ImportReport& m) {
  shown_fields(f, m);
  f("version_tensors", m.outcome.version.tensors);
}

// Takes versions of a bundle over. The client opens the files of the bundle, with its own rights.
struct BundleImportRequest {
  BundleImportOptions options;
  std::string where;       // the bundle as the user named it, for messages
  bool directory = false;  // it is a directory
};
inline void fields(JsonFields& f, BundleImportRequest& m) {
  f("specs", m.options.specs)("dry_run", m.options.dry_run)("move_tags", m.options.move_tags);
  f("where", m.where, limits::kPathMax)("directory", m.directory);
}
// Asks for the descriptor of a file by its name, as BundleFiles::open() does; the reply has the descriptor, or is an
// OpenFailure.
struct BundleEvent {
  std::optional<std::string> open{};
};
inline void fields(JsonFields& f, BundleEvent& m) {
  f("open", m.open);
}
inline void fields(JsonFields& f, BundleImportReport& m) {
  f("bundle", m.uuid)("versions", m.versions)("imported", m.imported)("known", m.known)("removed", m.removed);
  f("tags", m.tags);
  f("bytes", m.bytes)("left", m.left);
}

// Claims a key for this node until the client cancels the request or goes. While another node has the claim, the daemon
// reports each change of the line. At last it reports that this node has the claim. By then the store shows what the
// other node has published. The request fails with Errc::changed if the claim is lost.
struct ClaimRequest {
  std::string key;  // limits::kClaimDigits hexadecimal digits
};
void fields(JsonFields& f, ClaimRequest& m);
struct ClaimEvent {
  bool held = false;
  std::string holder = {};  // the name of the node that has the claim, if `held` is false
  // The id of the node that has received what this one copies meanwhile; if `held`: of the one that had the claim last;
  // "": there is none, or it is unknown.
  std::string node = {};
  std::uint64_t since_ns = 0;  // when that node got it, by its clock; 0: unknown
  bool operator==(const ClaimEvent&) const = default;
};
inline void fields(JsonFields& f, ClaimEvent& m) {
  f("held", m.held)("holder", m.holder)("node", m.node)("since_ns", m.since_ns);
}

// Asks another node for what its pull has received (weft/cluster/pulled.h). The descriptor is a file with the state of
// `pieces` pieces, four bytes each in the order of this machine, and then `bytes` bytes.
struct PulledRequest {
  std::string node;  // its id
  PulledAsk ask;
};
void fields(JsonFields& f, PulledRequest& m);
struct PulledAnswer {
  std::uint64_t pieces = 0;
  std::uint64_t bytes = 0;
};
inline void fields(JsonFields& f, PulledAnswer& m) {
  f("pieces", m.pieces, kPulledPiecesMax)("bytes", m.bytes, kPulledBytesMax);
}

// Puts bytes of a version into the cache that this node has copied from a pull of another node, from the area of that
// pull.
struct AdoptRequest {
  std::string key;   // of the area: limits::kClaimDigits hexadecimal digits
  std::string spec;  // MODEL@V
};
void fields(JsonFields& f, AdoptRequest& m);
struct AdoptReport {
  std::uint64_t bytes = 0;  // that the cache has now and lacked before
};
inline void fields(JsonFields& f, AdoptReport& m) {
  f("bytes", m.bytes);
}

struct TagRequest {
  std::string spec;  // MODEL[@V]; to delete, protect or unprotect a tag, MODEL
  std::string tag;
  bool gone = false;
  bool protect = false, unprotect = false;
};
inline void fields(JsonFields& f, TagRequest& m) {
  f("spec", m.spec)("tag", m.tag)("delete", m.gone)("protect", m.protect)("unprotect", m.unprotect);
}

// Changes the message and metrics of a version.
struct NoteRequest {
  std::string spec;  // MODEL[@V]
  DescriptionChange change;
};
void fields(JsonFields& f, NoteRequest& m);

struct RenameRequest {
  std::string model;
  std::string to;
};
inline void fields(JsonFields& f, RenameRequest& m) {
  f("model", m.model)("to", m.to);
}

struct GroupId {
  gid_t gid = 0;
};
inline void fields(JsonFields& f, GroupId& m) {
  f("gid", m.gid);
}
// Asks whether a user may publish. Root and the daemon's user may ask about other users.
struct MayPublishRequest {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<GroupId> groups{};
};
inline void fields(JsonFields& f, MayPublishRequest& m) {
  f("uid", m.uid)("gid", m.gid)("groups", m.groups, JsonFields::Form::row);
}

// The versions of a model that a removal of old versions keeps: those with a tag, the newest `newest`, and the best by
// a metric.
struct KeepRule {
  std::uint64_t newest = 0;  // 0: no version is removed
  std::string best;          // METRIC: the smallest value is the best; -METRIC: the largest is; "": none
};

struct RemoveRequest {
  std::vector<std::string> specs;  // MODEL@V; with `all` or `keep` models
  bool all = false;
  KeepRule keep;       // with `newest`: removes only what the rule does not keep
  bool force = false;  // removes versions that have a tag, with the tag
  bool dry_run = false;
};
inline void fields(JsonFields& f, RemoveRequest& m) {
  f("specs", m.specs)("all", m.all)("keep", m.keep.newest)("keep_best", m.keep.best, limits::kMetricTextMax + 1);
  f("force", m.force)("dry_run", m.dry_run);
}

struct RemoveReport {
  // weftd keeps the content of the removed versions until then, unless a user runs gc or space is short. 0: the next gc
  // may free it.
  std::uint64_t kept_until_ns = 0;
};
inline void fields(JsonFields& f, RemoveReport& m) {
  f("kept_until_ns", m.kept_until_ns);
}

// Takes versions down for good.
struct PurgeRequest {
  std::vector<std::string> specs;  // MODEL@V, or MODEL for all its versions, removed ones too
  bool force = false;              // also versions that have a tag
  bool dry_run = false;
};
inline void fields(JsonFields& f, PurgeRequest& m) {
  f("specs", m.specs)("force", m.force)("dry_run", m.dry_run);
}

struct PurgeReport {
  std::vector<VersionName> purged;
  std::vector<VersionName> shared_with;  // some of the live versions that have bytes of purged ones, which stay
  std::uint64_t bytes_freed = 0;         // disk space on this node
  std::uint64_t origin_bytes_freed = 0;  // disk space at the origin
  std::uint64_t origin_dead_bytes = 0;   // in packs of the origin that other versions need
  std::vector<std::string> nodes;        // other nodes, which free the content now
  std::vector<std::string> absent;       // nodes that do so when they come back
  std::vector<std::string> problems;     // why content stays on this node or at the origin until the next gc
};
void fields(JsonFields& f, PurgeReport& m);

struct UndeleteRequest {
  std::vector<std::string> specs;  // MODEL@NUMBER
};
inline void fields(JsonFields& f, UndeleteRequest& m) {
  f("specs", m.specs);
}

inline void fields(JsonFields& f, TagTarget& m) {
  f("tag", m.name)("version", m.number);
}
inline void fields(JsonFields& f, UndeletedVersion& m) {
  f("model", m.model)("version", m.number)("tags", m.tags)("moved", m.moved);
}

inline void fields(JsonFields& f, GcOptions& m) {
  f("dry_run", m.dry_run)("all", m.all);
}

// The reason why gc cannot tell what is needed.
struct UndecidedVersion {
  std::string version;  // its content is unknown; "": the list of versions is
  std::string problem;  // one line
  std::string command;  // resolves it
};
inline void fields(JsonFields& f, UndecidedVersion& m) {
  f("version", m.version)("problem", m.problem)("command", m.command);
}

struct GcOutcome {
  GcReport report;
  AssembledSweep swept;
  std::vector<OldDraft> drafts{};  // removed drafts; with `dry_run`, those that gc would remove
  // Reasons why gc freed no blobs of removed versions; it freed all the rest.
  std::vector<UndecidedVersion> undecided{};
};
void fields(JsonFields& f, GcOutcome& m);

struct PrefetchRequest {
  std::string spec;
  std::string layers;  // "": all layers
};
inline void fields(JsonFields& f, PrefetchRequest& m) {
  f("spec", m.spec)("layers", m.layers, limits::kTensorNameMax);
}

inline void fields(JsonFields& f, FetchReport& m) {
  f("files", m.files)("bytes", m.bytes)("moved_bytes", m.moved_bytes)("held_by", m.held_by);
}

struct PinRequest {
  std::string spec;
  bool pinned = false;
};
inline void fields(JsonFields& f, PinRequest& m) {
  f("spec", m.spec)("pinned", m.pinned);
}

struct EvictRequest {
  std::string spec;  // "": all versions
  std::uint64_t bytes_max = 0;
  bool dry_run = false;
};
inline void fields(JsonFields& f, EvictRequest& m) {
  f("spec", m.spec)("bytes_max", m.bytes_max)("dry_run", m.dry_run);
}

inline void fields(JsonFields& f, EvictReport& m) {
  f("packs", m.packs)("disk_bytes", m.disk_bytes)("kept_bytes", m.kept_bytes)("pinned_bytes", m.pinned_bytes);
  f("busy_bytes", m.busy_bytes);
}

struct StageOutRequest {
  std::string spec;  // "": all versions of this node
  bool evictable = false, new_origin = false;
  std::uint64_t seconds_max = 0;  // of the wait; 0: no limit
};
inline void fields(JsonFields& f, StageOutRequest& m) {
  f("spec", m.spec)("evictable", m.evictable)("new_origin", m.new_origin)("seconds_max", m.seconds_max);
}

inline void fields(JsonFields& f, HandOverReport& m) {
  f("packs", m.packs)("disk_bytes", m.disk_bytes)("kept_packs", m.kept_packs)("kept_disk_bytes", m.kept_disk_bytes);
}

struct RepairRequest {
  ContentId blob;
  std::uint64_t offset = 0;  // offset of the blob in the file that the client sends, if any
};
void fields(JsonFields& f, RepairRequest& m);

struct OriginGcRequest {
  std::uint64_t grace_s = 0;  // versions that were removed within this time keep their content
  bool dry_run = false;
};
inline void fields(JsonFields& f, OriginGcRequest& m) {
  f("grace_seconds", m.grace_s)("dry_run", m.dry_run);
}

inline void fields(JsonFields& f, OriginGcReport& m) {
  f("versions", m.versions)("versions_in_grace", m.versions_in_grace)("packs_freed", m.packs_freed);
  f("bytes_freed", m.bytes_freed)("manifests_freed", m.manifests_freed)("packs", m.packs);
  f("dead_bytes", m.dead_bytes)("unfinished_freed", m.unfinished_freed)("packs_rewritten", m.packs_rewritten);
  f("packs_spared", m.packs_spared);
}

struct OriginFsckRequest {
  bool repair = false;
};
inline void fields(JsonFields& f, OriginFsckRequest& m) {
  f("repair", m.repair);
}

inline void fields(JsonFields& f, OriginFsckReport& m) {
  f("versions", m.versions)("waiting", m.waiting)("manifests", m.manifests)("packs", m.packs)("records", m.records);
  f("bytes_read", m.bytes_read)("damaged", m.damaged)("problems", m.problems)("repaired", m.repaired);
}

struct RestoreRequest {
  bool accept_loss = false;
};
inline void fields(JsonFields& f, RestoreRequest& m) {
  f("accept_loss", m.accept_loss);
}

inline void fields(JsonFields& f, RestoreReport& m) {
  f("refused", m.refused)("models", m.models)("versions", m.versions)("removed", m.removed)("tags", m.tags);
  f("packs", m.packs)("bytes", m.bytes)("problems", m.problems)("mended", m.mended);
}

struct ReconcileWish {
  bool dry_run = false;
};
inline void fields(JsonFields& f, ReconcileWish& m) {
  f("dry_run", m.dry_run);
}

inline void fields(JsonFields& f, Renumbered& m) {
  f("model", m.model)("from", m.from)("to", m.to);
}
inline void fields(JsonFields& f, ReconcileReport& m) {
  f("generation", m.generation)("returned", m.returned)("renumbered", m.renumbered)("waits_for", m.waits_for);
  f("problems", m.problems);
}

struct OriginReport {
  std::string path;
  OriginTotals totals;
  std::uint64_t waiting = 0;  // versions that this node has not written to the origin yet
};
inline void fields(JsonFields& f, OriginReport& m) {
  f("path", m.path)("packs", m.totals.packs)("bytes", m.totals.bytes)("manifests", m.totals.manifests);
  f("versions", m.totals.versions)("waiting", m.waiting);
}

struct PeerEntry {
  std::string node, name, address, provider, since;
  std::uint64_t since_ns = 0;
};
inline void fields(JsonFields& f, PeerEntry& m) {
  f("node", m.node)("name", m.name)("address", m.address)("provider", m.provider)("since", m.since);
  f("since_ns", m.since_ns);
}

// Changes the cluster's key on all nodes.
struct RotateKeyRequest {
  bool finish = false;  // without the nodes that are away
};
inline void fields(JsonFields& f, RotateKeyRequest& m) {
  f("finish", m.finish);
}
struct RotateKeyReport {
  std::string key;                 // name of the new key
  std::string before;              // name of the old key
  std::vector<std::string> nodes;  // names of the other nodes that use the new key
  std::vector<std::string> away;   // names of nodes that may lack the new key
  bool forgotten = false;          // no node accepts the old key any more
};
inline void fields(JsonFields& f, RotateKeyReport& m) {
  f("key", m.key)("before", m.before)("nodes", m.nodes)("away", m.away)("forgotten", m.forgotten);
}

// Moves the versions that only one node keeps to the origin or to other nodes.
struct NodeDrainRequest {
  std::string node;  // name or id; "": this one
};
inline void fields(JsonFields& f, NodeDrainRequest& m) {
  f("node", m.node);
}
struct NodeDrainReport {
  std::string node, name;
  std::uint64_t versions = 0, bytes = 0;  // that were moved
  std::vector<std::string> to;            // "the origin", and names of nodes
};
inline void fields(JsonFields& f, NodeDrainReport& m) {
  f("node", m.node)("name", m.name)("versions", m.versions)("bytes", m.bytes)("to", m.to);
}

// Forgets an absent node.
struct NodeRemoveRequest {
  std::string node;    // name or id
  bool force = false;  // removes the versions that only this node has, as lost
};
inline void fields(JsonFields& f, NodeRemoveRequest& m) {
  f("node", m.node)("force", m.force);
}
struct NodeRemoveReport {
  std::string node, name;
  std::vector<std::string> lost;  // MODEL@NUMBER of the versions that were given up
};
inline void fields(JsonFields& f, NodeRemoveReport& m) {
  f("node", m.node)("name", m.name)("lost", m.lost);
}

// A node that the cluster knows, and that is not a member now.
struct AbsentNode {
  std::string node, name, last;  // `last`: when it was last seen
  std::uint64_t last_ns = 0;
};
inline void fields(JsonFields& f, AbsentNode& m) {
  f("node", m.node)("name", m.name)("last", m.last)("last_ns", m.last_ns);
}
void fields(JsonFields& f, MountRequests& m);
void fields(JsonFields& f, MountFigures& m);

struct PeerList {
  std::vector<PeerEntry> peers;
  std::vector<AbsentNode> absent{};
  bool stale = false;   // true if etcd does not answer: the list is then an old one
  std::string trouble;  // why; "" if it is not stale
};
inline void fields(JsonFields& f, PeerList& m) {
  f("peers", m.peers)("absent", m.absent)("stale", m.stale)("trouble", m.trouble);
}

}  // namespace weft
