// weft scrub (store/checking/scrub.cc): reads and verifies all packs of a store, and then its assembled files, in
// pieces and at a bounded rate.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/result.h"
#include "weft/store/fsck.h"
#include "weft/store_rows.h"

namespace weft {

// Options of one run of a scrub.
struct ScrubOptions {
  std::uint64_t bytes_per_s = 50U << 20U;            // average read rate, at most
  std::optional<std::chrono::milliseconds> run_for;  // the run stops after this time, at the end of a blob
};
// STORE/scrub: findings of the scrubs of a store, and the place where the next run continues.
struct ScrubPass {
  std::uint64_t begun_ns = 0, ended_ns = 0;
  std::uint64_t packs = 0, blobs = 0, bytes = 0;
  std::uint64_t problems = 0;
  std::vector<std::string> lines;  // the first problems
};
struct ScrubState {
  std::optional<ScrubPass> last;  // the last complete pass
  std::optional<ScrubPass> now;   // the pass that is not complete yet
  BlobPlace next;                 // where `now` continues: the blobs before it were read
  bool assembled = false;         // `next` is in an assembled file: all packs were read
};
struct ScrubReport {
  ScrubState state;
  std::uint64_t bytes = 0;           // read by this run
  std::uint64_t problems = 0;        // found by this run
  std::vector<std::string> lines;    // of this run
  std::vector<DamagedBlob> damaged;  // of this run
  bool complete = false;             // this run reached the end of the store
  std::string not_recorded;          // why STORE/scrub was not written; "" if it was
};
// Returns the content of STORE/scrub. Errc::not_found: the store was never scrubbed.
Result<ScrubState> read_scrub_state(const std::string& store_path);

class JsonWriter;
// Writes a pass as an object, or null, as status shows it.
void write_scrub(JsonWriter& json, const std::optional<ScrubPass>& pass);

}  // namespace weft
