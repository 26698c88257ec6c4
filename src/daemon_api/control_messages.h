// What the command line and the daemon say to each other about publishing and gc, as bodies of control messages. What
// comes back from the other end is hostile until it is decoded here.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json_value.h"
#include "publish/gather.h"
#include "weft/assembly.h"
#include "weft/gc.h"
#include "weft/node.h"

namespace weft {

// But for the paths: files travel as below.
std::string encode_import(const ImportOptions& options, std::size_t files);
struct ImportWish {
  ImportOptions options;
  std::size_t files = 0;
};
Result<ImportWish> decode_import(const JsonValue& body);

// As many of the files from `first` on as one message holds, at least one.
std::string encode_files(std::span<const SourceFile> files, std::size_t first);
// Appends to `files`, which gets no longer than `count`.
Status decode_files(const JsonValue& body, std::size_t count, std::vector<SourceFile>& files);

std::string encode_report(const ImportReport& report);
// Of the version's row, what a publish prints.
Result<ImportReport> decode_report(const JsonValue& body);

struct GcOutcome {
  GcReport report;
  AssembledSweep swept;
};
std::string encode_gc(const GcOutcome& outcome);
Result<GcOutcome> decode_gc(const JsonValue& body);

}  // namespace weft
