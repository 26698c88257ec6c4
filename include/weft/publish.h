// How a version comes into a store: an import, and its one commit (store/publish.cc, store/prepare.cc).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/content.h"
#include "weft/lineage.h"
#include "weft/result.h"
#include "weft/store_rows.h"
#include "weft/version_content.h"

namespace weft {

class Progress;
struct MirroredVersion;  // cluster_store.h

// Where the bytes of a version are when its publish returns.
enum class Durability : std::uint8_t {
  memory,  // in the page cache of this node; a disk has them soon after. If the machine stops before, they are lost
  local,   // on a disk of this node
  origin,  // on that disk, and at the origin
};

// Called before each piece of background work, some MiB, which it may hold up. An error ends the work.
using FlushPace = std::function<Status()>;

std::string_view durability_name(Durability durability);  // "memory", "local", "origin"
// Errc::invalid: another word; `what` starts the message.
Result<Durability> parse_durability(std::string_view text, std::string_view what);

struct PublishRequest {
  std::string model;
  std::vector<std::byte> manifest;  // encoded; empty where Import::seal() was given it
  VersionContent content;
  std::vector<ParentRef> parents;  // must be live, or are left out where they are not declared; ids are not looked at
  std::vector<std::string> elsewhere;
  std::vector<std::string> tags;  // set to the new version in the same commit
  std::string message;
  std::vector<std::pair<std::string, std::string>> metrics;
};

struct PublishOutcome {
  VersionRow version;
  bool made = false;  // false: the newest live version has this content already; `version` is that one (tags are set)
  std::uint64_t new_bytes = 0;     // unique bytes that came in
  std::uint64_t shared_bytes = 0;  // logical bytes that were here (or twice in the input)
};

// An import that a registry decides on: its packs and manifest are in place and durable, and what it needs that is here
// stays here (owned from now on, if it was cached), while this lives. Destroyed without keep() it takes back what it
// brought.
class PreparedPublish {
 public:
  virtual ~PreparedPublish() = default;
  // The record for the registry. Its number is 0: the registry gives the number.
  virtual const MirroredVersion& record() const = 0;
  // Live versions that between them hold all bytes that this one needs and this node has not. They must live when the
  // registry takes it, as its declared parents must.
  virtual std::span<const std::pair<std::string, std::uint64_t>> relies_on() const = 0;
  virtual std::uint64_t new_bytes() const = 0;  // unique bytes that came in
  // The registry has taken it, or may have: it stays, for Store::mirror or for gc to judge.
  virtual void keep() = 0;
};

// What becomes of a file that is added.
enum class Take : std::uint8_t {
  copy,
  // It may become a pack as it lies, without a copy: nobody writes to it, it is this user's, and its name goes once it
  // is published. It belongs to the store's owner from then on. Where that cannot be, it is copied.
  move,
  // The same, and another name of it may stay, by which nobody writes to it.
  share,
};

// Receives the bytes of a file from front to back, each once, as they are read.
using SeenBytes = std::function<void(std::span<const std::byte>)>;

// Gives the bytes of an encoded manifest to its argument, once; they live no longer than that call.
using GiveManifest = std::function<Status(const std::function<Status(std::span<const std::byte>)>&)>;

// Ingests files, then publishes them as one atomic commit. Destroyed without publish, it leaves nothing behind.
class Import {
 public:
  virtual ~Import() = default;
  // Reads the regular file `fd` (size as fstat says) once, cut into `ranges` (in order, touching, covering the file,
  // none empty), and returns each range's id. Known content is compared with the stored bytes and not stored again; if
  // these differ, it is stored anew and the damaged copy is dead. A file of which nothing large is known becomes a
  // pack of its own. Errc::changed when the file changes meanwhile; `where` starts messages.
  virtual Result<std::vector<Extent>> add(int fd, std::string_view where, std::span<const Range> ranges, Take take,
                                          Progress& progress, const SeenBytes& seen) = 0;
  Result<std::vector<Extent>> add(int fd, std::string_view where, std::span<const Range> ranges, Progress& progress) {
    return add(fd, where, ranges, Take::copy, progress, {});
  }
  // After the last add(): makes what was added durable, and the version's manifest, so that neither takes memory in
  // proportion to its tensors when the version is published. publish() and prepare() do it where nobody has. After a
  // failure only destruction is left.
  virtual Status seal(const GiveManifest& manifest) = 0;
  // Makes everything durable, but for bytes that are to be in memory alone, and commits. The Import is spent
  // afterwards, also when this fails.
  virtual Result<PublishOutcome> publish(const PublishRequest& request) = 0;
  // The same, up to the commit. For a store in a cluster.
  virtual Result<std::unique_ptr<PreparedPublish>> prepare(const PublishRequest& request) = 0;
};

struct UserIds {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups{};  // beside `gid`
};

// Who may publish into a store, as the daemon that has it says. Any thread.
class PublishRights {
 public:
  virtual ~PublishRights() = default;
  // An answer counts for 5 seconds. Errc::permission: the user may not. Errc::not_found: no daemon has the store, so
  // its files' own rights decide. Another error: the daemon does not answer now.
  virtual Status may_publish(const UserIds& user) = 0;
};
std::unique_ptr<PublishRights> make_publish_rights(const std::string& store_path);

}  // namespace weft
