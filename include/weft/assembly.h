// Assembled files: packs that hold one published file each whose bytes lie in several packs, so that the kernel can
// read it without us. A cache in the store's directory, shared by all processes of a store and written by mounts,
// imports and `weft pin`: nothing durable depends on it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/progress.h"
#include "weft/publish.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// Smaller files are read through us as fast as they can be opened.
inline constexpr std::uint64_t kAssembledFileMin = 1U << 20U;

struct AssemblyOptions {
  // The bound on the sizes of all assembled files together, bytes; 0: none are made. Without: what the store says
  // (set_assembly_max), else a tenth of its file system. Files that share blocks with packs count in full too.
  std::optional<std::uint64_t> bytes_max;
};

struct AssembledUsage {
  std::uint64_t files = 0, bytes = 0;
  std::uint64_t pinned_files = 0, pinned_bytes = 0;  // of these, of pinned versions
  std::uint64_t parts = 0;                           // being made, or left by a process that died
  std::uint64_t bytes_max = 0;
};

struct AssembledSweep {
  std::uint64_t files = 0, bytes = 0;  // removed
  std::uint64_t parts = 0;             // left by processes that died
};

AssembledUsage assembled_usage(Store& store);
// gc's part: removes what no live version needs, what dead processes left, and what is above the bound.
Result<AssembledSweep> sweep_assembled(Store& store, bool dry_run);

struct PinReport {
  std::uint64_t files = 0, bytes = 0;  // in several packs, so that there is something to assemble
  std::uint64_t made = 0;              // of these files, made now
};
// Records that a version is pinned, or is not: Store::pin(), or the daemon's.
using RecordPin = std::function<Status(const VersionRow& version, bool pinned)>;
// Pins a version and assembles its files now. If that fails, also with Errc::no_space when they do not fit the bound
// beside what is pinned, the version is not pinned by it. Files of a pinned version are not evicted.
Result<PinReport> pin_version(Store& store, std::string_view spec, const RecordPin& record, Progress& progress);

// The bound of all mounts that name none; takes effect at once.
Status set_assembly_max(Store& store, std::uint64_t bytes_max);

// After a publish: assembles the version's files where the file system can share their blocks, so that not even their
// first open waits. Does nothing elsewhere. What fails here is no failure of the publish.
void assemble_by_sharing(Store& store, const VersionRow& version);

// A file that a publish was given (weft/publish.h, Take), and that did not become a pack.
struct GivenFile {
  std::string path;  // in the version
  int fd = -1;       // stays the caller's
  Take take = Take::move;
};
// After a publish: those of them that lie in several packs become assembled files as they lie, without a copy, so that
// their first open is by passthrough. The caller knows that nobody has written to them since they were read. As above.
void assemble_given(Store& store, const VersionRow& version, std::span<const GivenFile> files);

}  // namespace weft
