// How a version gets into a store: an import, and its single commit (store/publishing/publisher.cc).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/arrival.h"
#include "weft/content.h"
#include "weft/model/version_content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

class Progress;
struct MirroredVersion;  // cluster_store.h

// Where a version's bytes are when its publish returns.
enum class Durability : std::uint8_t {
  memory,  // in this node's page cache, and on a disk soon after; lost if the machine stops before
  local,   // on a disk of this node
  origin,  // on that disk and at the origin
};

// Called before each piece of background work (some MiB), which it may delay. An error ends the work.
using FlushPace = std::function<Status()>;

std::string_view durability_name(Durability durability);  // "memory", "local", "origin"
// Parses the name of a durability. Errc::invalid: another word; `what` starts the message.
Result<Durability> parse_durability(std::string_view text, std::string_view what);

struct PublishRequest {
  std::string model;
  std::vector<std::byte> manifest;  // encoded; empty if Import::seal() has received it
  VersionContent content;
  std::vector<ParentRef> parents;  // declared ones must be live, others are left out if not; ids are ignored
  std::vector<std::string> elsewhere;
  std::vector<std::string> tags;  // tags to set to the new version in the same commit
  std::string message;
  Provenance source = {};  // as VersionRow
  std::vector<std::pair<std::string, std::string>> metrics;
  Author by;  // recorded as who set the tags
  // The record of a version that another store made, to keep: its number, identity, time, message, metrics, source and
  // parents, which need not be stored. The fields for them above are then not used. The publish always makes a version.
  // Errc::exists: the number is used. A record of a removed version makes a removed version, without content.
  std::optional<VersionRow> given = {};
};

struct PublishOutcome {
  VersionRow version;
  bool made = false;       // false: the newest live version has this content; `version` is that one (with the tags)
  bool in_memory = false;  // VersionNote::in_memory of `version`
  std::uint64_t new_bytes = 0;     // unique bytes that were added
  std::uint64_t shared_bytes = 0;  // logical bytes that were stored already (or twice in the input)
};

// An import that waits for the registry's decision. Its packs and manifest are in place and durable. While this lives,
// the local blobs that it needs stay local; cached packs with such blobs become owned. Destroyed without keep(), it
// removes what it has added.
class PreparedPublish {
 public:
  virtual ~PreparedPublish() = default;
  // Returns the record for the registry. Its number is 0, because the registry assigns it.
  virtual const MirroredVersion& record() const = 0;
  // Returns live versions that together hold all blobs that this version needs and this node lacks. They must be live
  // when the registry accepts it, and so must its declared parents.
  virtual std::span<const std::pair<std::string, std::uint64_t>> relies_on() const = 0;
  virtual std::uint64_t new_bytes() const = 0;  // unique bytes that were added
  // The registry has accepted the version, or may have. Its packs stay, and RegistryMirror::apply or gc decides about
  // them.
  virtual void keep() = 0;
};

// How an import treats a source file. Only the owner of the store gives files away: another user can keep a file
// writable in ways that no process sees, such as a page that the kernel has pinned for a direct read.
enum class Take : std::uint8_t {
  copy,
  // The file may become a pack without a copy: nobody writes to it, and its name is removed after the publish. If that
  // is not possible, it is copied.
  move,
  // As `move`, but one other hard link may stay. Nobody writes through it.
  share,
};

// Receives the bytes of a file from front to back, each once, while they are read.
using SeenBytes = std::function<void(std::span<const std::byte>)>;

// The files that one source of an import consists of, one after another: a file itself, or the small files in a bundle.
struct PlainSums {
  std::vector<std::uint64_t> sizes;  // together the bytes of the source
  std::vector<Digest> digests = {};  // the plain SHA-256 of each; complete after Import::finish_sums()
};
// How an import reads a source: it passes the bytes on to these while it stores them, and waits for bytes that arrive.
struct ByteUses {
  SeenBytes seen = {};
  std::shared_ptr<PlainSums> sums = {};  // none: no plain SHA-256
  AwaitBytes await = {};                 // of a file that arrives meanwhile
};

// Passes the bytes of an encoded manifest to its argument, once. They are valid during that call.
using GiveManifest = std::function<Status(const std::function<Status(std::span<const std::byte>)>&)>;

// Stores files, then publishes them in one atomic commit. Destroyed without a publish, it leaves nothing behind.
class Import {
 public:
  virtual ~Import() = default;
  // Reads the regular file `fd` (of the size that fstat returns) once, cut into `ranges` (adjacent, in order, covering
  // the file, none empty). Returns an extent for each range. Known content is compared with the stored bytes and not
  // stored again. If the stored bytes differ, it is stored again, and the damaged copy is dead. A file with no large
  // part known becomes a pack of its own. Errc::changed: the file changed meanwhile; `where` starts messages.
  // Errc::busy: a file that arrived is still open for writing.
  virtual Result<std::vector<Extent>> add(int fd, std::string_view where, std::span<const Range> ranges, Take take,
                                          Progress& progress, const ByteUses& uses) = 0;
  Result<std::vector<Extent>> add(int fd, std::string_view where, std::span<const Range> ranges, Progress& progress) {
    return add(fd, where, ranges, Take::copy, progress, {});
  }
  // Waits until the sums of all files that were added are complete.
  virtual void finish_sums() = 0;
  // Returns the plain SHA-256 of files that consist of this content, which the import has added or the store has. Reads
  // the stored bytes. Nothing for a file whose bytes are not all undamaged on this node. Call it before seal().
  virtual Result<std::vector<std::optional<Digest>>> sums_of(std::span<const std::span<const Extent>> files,
                                                             Progress& progress) = 0;
  // Call after the last add(). Makes the added bytes and the version's manifest durable, so that the publish does not
  // need memory in proportion to the tensors. publish() and prepare() do this if the caller has not. After a failure
  // the import can only be destroyed.
  virtual Status seal(const GiveManifest& manifest) = 0;
  // Makes everything durable, except for bytes that stay in memory alone, and commits. The Import is spent afterwards,
  // even after a failure.
  virtual Result<PublishOutcome> publish(const PublishRequest& request) = 0;
  // Does all of publish() except the commit. For a store in a cluster.
  virtual Result<std::unique_ptr<PreparedPublish>> prepare(const PublishRequest& request) = 0;
};

struct UserIds {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups{};  // in addition to `gid`
};

// Asks the daemon of a store who may publish models of some name. A publish itself shows whether the user has the right
// for its name. Any thread.
class PublishRights {
 public:
  virtual ~PublishRights() = default;
  // Uses an answer for 5 seconds while the daemon lives. Errc::permission: the user may not. Errc::not_found: no daemon
  // has the store, so the rights of its files decide. Other errors: the daemon does not answer now.
  virtual Status may_publish(const UserIds& user) = 0;
};
std::unique_ptr<PublishRights> make_publish_rights(const std::string& store_path);

}  // namespace weft
