// The bodies of control messages that the command line and the daemon exchange (control/message.h frames them). Each
// has one list of its members, fields(), by which encode_fields() writes it and decode_fields() reads it. What comes
// from the other end is hostile until it is decoded so.
//
//   request    body              events               answer
//   import     ImportRequest     ImportQuestion, …    ImportReport
//   tag        TagRequest                             VersionName
//   rm         RemoveRequest     VersionName          {}
//   gc         GcOptions         ProgressEvent        GcOutcome
//   prefetch   PrefetchRequest   ProgressEvent        FetchReport
//   pin        PinRequest                             {}
//   evict      EvictRequest                           EvictReport
//   stage_out  StageOutRequest                        HandOverReport
//   repair     RepairRequest     ProgressEvent        {}
//   restore    RestoreRequest    ProgressEvent        RestoreReport
//   origin     {}                                     OriginReport
//   peers      {}                                     PeerList
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "publish/gather.h"
#include "weft/assembly.h"
#include "weft/cold.h"
#include "weft/node.h"
#include "weft/origin.h"

namespace weft {

struct Nothing {};
inline void fields(JsonFields& /*f*/, Nothing& /*m*/) {}

// The paths stay with the client: the daemon asks for the files.
struct ImportRequest {
  ImportOptions options;
  std::uint64_t files = 0;
};
// Either a list of the files from that number on, answered with encode_files(), or one of them, open: answered with its
// descriptor, or with an OpenFailure.
struct ImportQuestion {
  std::optional<std::uint64_t> files;
  std::optional<std::uint64_t> open;
};
struct OpenFailure {
  Error error;
};
// As many of the files from `first` on as one message holds, at least one.
std::string encode_files(std::span<const SourceFile> files, std::size_t first);
// Appends to `files`, which gets no longer than `count`.
Status decode_files(const JsonValue& body, std::size_t count, std::vector<SourceFile>& files);

struct ProgressEvent {
  std::string phase;
  std::uint64_t total = 0;
  std::uint64_t done = 0;
};
struct VersionName {
  std::string model;
  std::uint64_t number = 0;
};
struct TagRequest {
  std::string spec;  // the model alone, to delete a tag
  std::string tag;
  bool gone = false;
};
struct RemoveRequest {
  std::vector<std::string> specs;
  bool all = false;
};
struct GcOutcome {
  GcReport report;
  AssembledSweep swept;
};
struct PrefetchRequest {
  std::string spec;
  std::string layers;  // "": all
};
struct PinRequest {
  std::string spec;
  bool pinned = false;
};
struct EvictRequest {
  std::string spec;  // "": of all versions
  std::uint64_t bytes_max = 0;
  bool dry_run = false;
};
struct StageOutRequest {
  std::string spec;  // "": all of this node
  bool evictable = false;
  bool new_origin = false;
};
struct RepairRequest {
  ContentId blob;
  std::uint64_t offset = 0;  // where it begins in the file whose descriptor comes with the request, if one does
};
struct RestoreRequest {
  bool accept_loss = false;
};
struct OriginReport {
  std::string path;
  OriginTotals totals;
  std::uint64_t waiting = 0;  // versions that are still to be written there
};
struct PeerEntry {
  std::string node, name, address, provider, since;
};
struct PeerList {
  std::vector<PeerEntry> peers;
};

void fields(JsonFields& f, ImportRequest& m);
void fields(JsonFields& f, ImportQuestion& m);
void fields(JsonFields& f, ImportReport& m);
void shown_fields(JsonFields& f, ImportReport& m);  // what `weft import --json` prints of it
void fields(JsonFields& f, OpenFailure& m);
void fields(JsonFields& f, ProgressEvent& m);
void fields(JsonFields& f, VersionName& m);
void fields(JsonFields& f, TagRequest& m);
void fields(JsonFields& f, RemoveRequest& m);
void fields(JsonFields& f, GcOptions& m);
void fields(JsonFields& f, GcOutcome& m);
void fields(JsonFields& f, PrefetchRequest& m);
void fields(JsonFields& f, FetchReport& m);
void fields(JsonFields& f, PinRequest& m);
void fields(JsonFields& f, EvictRequest& m);
void fields(JsonFields& f, EvictReport& m);
void fields(JsonFields& f, StageOutRequest& m);
void fields(JsonFields& f, HandOverReport& m);
void fields(JsonFields& f, RepairRequest& m);
void fields(JsonFields& f, RestoreRequest& m);
void fields(JsonFields& f, RestoreReport& m);
void fields(JsonFields& f, OriginReport& m);
void fields(JsonFields& f, PeerList& m);

}  // namespace weft
