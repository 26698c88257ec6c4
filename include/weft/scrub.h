// weft scrub: all packs of a store, and then its assembled files, are read and verified, in pieces and at a bounded
// rate.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/fsck.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// A part of a scrub, and where it may stop.
struct ScrubOptions {
  std::uint64_t bytes_per_s = 50U << 20U;            // read on average, at most
  std::optional<std::chrono::milliseconds> run_for;  // then it stops, after the blob that it is at
};
// STORE/scrub: what the scrubs of a store have found, and where the next one goes on.
struct ScrubPass {
  std::uint64_t begun_ns = 0, ended_ns = 0;
  std::uint64_t packs = 0, blobs = 0, bytes = 0;
  std::uint64_t problems = 0;
  std::vector<std::string> lines;  // the first of the problems
};
struct ScrubState {
  std::optional<ScrubPass> last;  // complete
  std::optional<ScrubPass> now;   // begun, and to be continued
  BlobPlace next;                 // of `now`: the blobs before it were read
  bool assembled = false;         // `next` is in an assembled file: all packs were read
};
struct ScrubReport {
  ScrubState state;
  std::uint64_t bytes = 0;           // that this run read
  std::uint64_t problems = 0;        // that this run found
  std::vector<std::string> lines;    // of this run
  std::vector<DamagedBlob> damaged;  // of this run
  bool complete = false;             // this run reached the end of the store
  std::string not_recorded;          // why STORE/scrub could not be written; "" if it was
};
// The content of STORE/scrub. Errc::not_found: the store was never scrubbed.
Result<ScrubState> read_scrub_state(const std::string& store_path);

class JsonWriter;
// An object, or null: what status shows of a pass.
void write_scrub(JsonWriter& json, const std::optional<ScrubPass>& pass);

}  // namespace weft
