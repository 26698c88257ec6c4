// This node as a sender of swarms: it answers Wants with units that it has (swarm/uploads.h), or as the clerk of the
// origin with the names of units.
//
// A Want waits, without a thread, until run() answers it. The first Want of a version opens its session, which looks up
// the local chunks; later chunks are reported by arrived(). Wants, versions and uploads are bounded: of the Wants that
// run() has not seen and those that wait there are kWantsWaiting at most, each with one copy of its set. A node that
// has not read a unit within kUploadMax gets one at a time until it has read one, so that it cannot hold all uploads.
// While a Want of a reader (Traffic::foreground) can get a unit, no other Want of any version gets one.
//
// The upload of a name ends when its asker reports it (Join::read), when the asker leaves, or after kNamedMax. After
// that time it counts as read, so that its unit is not read twice while an asker is slow. Only a hungry asker gets the
// name of the unit again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/time_source.h"
#include "blobs/local_bytes.h"
#include "peers/swarm/local_units.h"
#include "peers/swarm/node_numbers.h"
#include "peers/swarm/unit_stock.h"
#include "peers/swarm/version_units.h"
#include "peers/swarm_messages.h"
#include "swarm/uploads.h"
#include "weft/bytes/source.h"
#include "weft/cluster/exchange.h"
#include "weft/content.h"

namespace weft {

// The state of one version, for the status.
struct SentVersion {
  Digest manifest;
  std::uint32_t units = 0, here = 0;
  std::uint64_t sent = 0;  // uploads that were read
  std::size_t waiting = 0, uploads = 0;
  bool is_source = false;
};

// Any thread; run() on one at a time. It calls out without a lock.
class SwarmSender : public std::enable_shared_from_this<SwarmSender> {
 public:
  // Then a version that was idle for kIdleMin is forgotten, or the Want refused as busy. To open a version costs a look
  // at all its chunks, so wants for ever new versions must not open one each.
  static constexpr std::size_t kVersionsMax = 64;
  static constexpr std::chrono::seconds kIdleMin{5};
  static constexpr std::chrono::seconds kIdleMax{60};    // then an idle version is forgotten
  static constexpr std::chrono::seconds kUploadMax{30};  // a longer upload counts as failed
  // Nodes of one version that neither wait nor read: if there are more, they are forgotten.
  static constexpr std::size_t kIdleNodesMax = 1'024;
  // A node that was asked as the source and lacks units looks again after this time: it may have published them now.
  static constexpr std::chrono::milliseconds kSurveyAgain{400};
  static constexpr std::chrono::seconds kNamedMax{2};  // a longer upload of a name counts as read
  // Uploads of names, for all versions: so many units are read from the origin at once, by all askers.
  static constexpr std::size_t kNamedAtOnce = 32;

  struct Parts {
    FindUnits units;
    // Called by run() when a node has asked for units of a version: the node is a partner from then on.
    std::function<void(const Digest& manifest, const std::string& node)> met;
    std::function<void()> wake;  // called when run() has work. It must not call this object
    const TimeSource& time = steady_time();
    // Called by run() when units of a version that this node had are gone. May be empty.
    std::function<void(const Digest& manifest)> lost = {};
  };
  explicit SwarmSender(Parts parts);

  // Sets the bytes to send, which outlive the last run(). Before, wants wait.
  void begin(LocalBytes& bytes) { begin(std::make_unique<LocalStock>(bytes)); }
  void begin(std::unique_ptr<UnitStock> stock);
  void end();  // drops all replies, and calls nobody any more. No run() is in work

  void receive(std::string_view node, Want want, PendingReply reply);
  void unwanted(std::string_view node);                                  // as PeerServer::unwanted
  void left(std::string_view node);                                      // the node has left the cluster
  void arrived(const Digest& manifest, std::span<const ChunkRun> runs);  // as BlobSource::arrived
  void survey_again();                                                   // as BlobSource::evicted
  void reported(std::string_view node, const Join& report);  // of names: how uploads ended, or that the node leaves
  // Answers wants. Returns the time of the next call, if wake() does not come before.
  std::optional<SwarmTime> run();

  std::vector<SentVersion> versions() const;
  std::uint64_t sent() const;  // units of all versions, forgotten ones too

 private:
  struct Waiting {
    SwarmNode node = 0;
    bool names = false;  // as in a Want
    PendingReply reply;
  };
  struct Session {
    Session(std::shared_ptr<const VersionUnits> of, UploadShare& share, std::uint64_t number)
        : version(std::move(of)),
          local(version),
          uploads(version->count(), share, version->units().chunks_per_unit()),
          serial(number) {}
    bool is_idle() const { return waiting.empty() && running.empty(); }
    bool may_go(SwarmTime now) const { return is_idle() && used + kIdleMin <= now; }

    const std::shared_ptr<const VersionUnits> version;
    LocalUnits local;
    Uploads uploads;
    const std::uint64_t serial;  // no other session has it
    NodeNumbers nodes;
    std::map<std::uint64_t, Waiting> waiting;                          // by the number of the want
    std::map<std::pair<SwarmNode, std::uint32_t>, SwarmTime> running;  // uploads, and when they began
    SwarmTime used{}, surveyed{};
    bool survey_again = false;
  };
  struct Queued {
    std::string node;
    Want want;
    PendingReply reply;
  };
  struct Refusal {
    PendingReply reply;
    Result<PeerReply> answer;
  };
  struct Upload {
    Digest manifest;
    std::uint64_t session = 0;
    std::shared_ptr<const VersionUnits> version;
    SwarmNode node = 0;
    std::optional<std::uint32_t> unit;
    bool names = false;  // as in a Want
    PendingReply reply;
  };
  struct Suspect {
    Digest manifest;
    std::uint64_t session = 0;
    std::uint64_t want = 0;
    Waiting waiting;
    bool wanted = true;
  };
  using Refusals = std::vector<Refusal>;
  using Met = std::vector<std::pair<Digest, std::string>>;
  using Sessions = std::map<Digest, std::unique_ptr<Session>>;

  std::optional<Digest> unknown() const WEFT_EXCLUDES(mutex_);
  void open(const Digest& manifest, UnitStock& stock) WEFT_EXCLUDES(mutex_);
  bool has_room() const WEFT_EXCLUDES(mutex_);
  bool make_room() WEFT_REQUIRES(mutex_);
  void refuse(const Digest& manifest, const Error& error) WEFT_EXCLUDES(mutex_);
  void survey_all(UnitStock& stock) WEFT_EXCLUDES(mutex_);
  void survey(const Digest& manifest, UnitStock& stock) WEFT_EXCLUDES(mutex_);
  void take_wants() WEFT_EXCLUDES(mutex_);
  std::optional<Result<PeerReply>> take(Queued& queued, SwarmTime now, Met& met) WEFT_REQUIRES(mutex_);
  void drop_gone() WEFT_EXCLUDES(mutex_);
  void drop_unwanted() WEFT_EXCLUDES(mutex_);
  std::vector<Suspect> take_suspects() WEFT_EXCLUDES(mutex_);
  void end_old(SwarmTime now) WEFT_EXCLUDES(mutex_);
  static void forget_idle(Session& session);
  bool waits_for_read(const std::string& node) const WEFT_REQUIRES(mutex_);
  std::chrono::seconds upload_max() const WEFT_REQUIRES(mutex_);
  void end_upload(Session& session, SwarmNode node, std::uint32_t unit, bool read) WEFT_REQUIRES(mutex_);
  void note_slow(const std::string& node) WEFT_REQUIRES(mutex_);
  static void forget(Session& session, SwarmNode node, std::vector<PendingReply>& dropped);
  std::vector<Upload> choose(SwarmTime now) WEFT_EXCLUDES(mutex_);
  std::vector<Upload> choose(SwarmTime now, Traffic traffic) WEFT_REQUIRES(mutex_);
  std::optional<Upload> next(const Digest& manifest, Session& session, SwarmTime now, Traffic traffic)
      WEFT_REQUIRES(mutex_);
  void send(Upload upload, UnitStock& stock) WEFT_EXCLUDES(mutex_);
  void failed(const Upload& upload, const Error& error) WEFT_EXCLUDES(mutex_);
  void ended(const Digest& manifest, std::uint64_t session, SwarmNode node, std::uint32_t unit, bool read)
      WEFT_EXCLUDES(mutex_);
  Session* find(const Digest& manifest, std::uint64_t serial) WEFT_REQUIRES(mutex_);
  std::optional<SwarmTime> due() const WEFT_EXCLUDES(mutex_);

  const Parts parts_;
  mutable Mutex mutex_;
  bool ended_ WEFT_GUARDED_BY(mutex_) = false;
  std::unique_ptr<UnitStock> stock_ WEFT_GUARDED_BY(mutex_);
  UploadShare share_ WEFT_GUARDED_BY(mutex_);
  std::deque<Queued> queued_ WEFT_GUARDED_BY(mutex_);  // wants that run() has not seen
  Sessions sessions_ WEFT_GUARDED_BY(mutex_);
  Digest last_ WEFT_GUARDED_BY(mutex_){};             // the version that was asked last for an answer
  std::uint64_t rounds_ WEFT_GUARDED_BY(mutex_) = 0;  // of answers, each of one class of traffic
  std::uint64_t serials_ WEFT_GUARDED_BY(mutex_) = 0, wants_ WEFT_GUARDED_BY(mutex_) = 0;
  std::uint64_t sent_ WEFT_GUARDED_BY(mutex_) = 0;
  bool survey_again_ WEFT_GUARDED_BY(mutex_) = false;
  std::set<std::string> slow_ WEFT_GUARDED_BY(mutex_);  // nodes that held an upload for kUploadMax, and read none since
  std::set<std::string> gone_ WEFT_GUARDED_BY(mutex_);  // nodes that left the cluster
  std::set<std::string> suspects_ WEFT_GUARDED_BY(mutex_);  // nodes with replies that may be unwanted
};

}  // namespace weft
