// Assembled files (assembly/assembled_versions.cc): packs with one published file each, whose bytes lie in several
// other packs. The kernel can read such a file without weft. They are a cache in the store's directory, shared by all
// processes of the store, and written by mounts, imports and `weft pin`. Nothing durable depends on it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/bytes/cold.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/publish.h"
#include "weft/store/store.h"

namespace weft {

// Smaller files are not assembled: a read through weft takes no longer than an open.
inline constexpr std::uint64_t kAssembledFileMin = 1U << 20U;

struct AssemblyOptions {
  // Bound on the size of all assembled files together, bytes; 0: none are made. Without it, the bound of the store
  // (set_assembly_max). Without that, files of pinned versions have no bound, and the others a tenth of the store's
  // file system, and never less than one file. If the file system shares no blocks, it is also at most half of what the
  // store's packs take: a process that cannot test that, for lack of rights or space, takes the larger bound. Files
  // that share blocks with packs count in full too.
  std::optional<std::uint64_t> bytes_max;
};

struct AssembledUsage {
  std::uint64_t files = 0, bytes = 0;
  std::uint64_t pinned_files = 0, pinned_bytes = 0;  // of these, files of pinned versions
  std::uint64_t parts = 0;                           // unfinished files, also of dead processes
  std::uint64_t bytes_max = 0;
};

struct AssembledSweep {
  std::uint64_t files = 0, bytes = 0;  // removed files
  std::uint64_t parts = 0;             // unfinished files of dead processes
};

AssembledUsage assembled_usage(Store& store);
// Part of gc: removes files that no live version needs, leftovers of dead processes, and files above the bound.
Result<AssembledSweep> sweep_assembled(Store& store, bool dry_run);

struct PinReport {
  std::uint64_t files = 0, bytes = 0;  // files in several packs, which can be assembled
  std::uint64_t made = 0;              // of these, files assembled by this call
};
// Records that a version is pinned or not, by Store::pin() or through the daemon.
using RecordPin = std::function<Status(const VersionRow& version, bool pinned)>;
// Pins a version and assembles its files. Files of a pinned version are not evicted. If the assembly fails, the version
// is left as it was, pinned or not; Errc::no_space: its files do not fit the bound beside other pinned files.
Result<PinReport> pin_version(Store& store, ManifestResolver& resolver, std::string_view spec, const RecordPin& record,
                              Progress& progress);

// Sets the bound of all mounts that have none of their own. Takes effect at once.
Status set_assembly_max(Store& store, std::uint64_t bytes_max);

// True if files in this directory, a store, can share their blocks with one another: an assembled file then takes no
// space.
bool shares_blocks(const std::string& store_path);

// Call after a publish. If the file system can share the blocks of the version's files, assembles them, so that not
// even their first open waits. Else does nothing. Errors do not fail the publish.
void assemble_by_sharing(Store& store, const VersionRow& version);

// A file that was given to a publish (weft/store/publish.h, Take), and did not become a pack.
struct GivenFile {
  std::string path;  // path in the version
  int fd = -1;       // owned by the caller
  Take take = Take::move;
};
// Call after a publish. Turns each of these files that lies in several packs into an assembled file, without a copy, so
// that its first open is by passthrough. The caller guarantees that nobody has written to the files since they were
// read. Errors do not fail the publish.
void assemble_given(Store& store, const VersionRow& version, std::span<const GivenFile> files);

}  // namespace weft
