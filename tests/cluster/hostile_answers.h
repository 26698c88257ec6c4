// A node that holds the cluster's key and the bytes, and serves something else.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "blobs/local_bytes.h"
#include "conformance/tapped_transport.h"
#include "hostile_member.h"
#include "peers/answers.h"

namespace weft::hostile {

// Faults of its answers:
//   none       no fault
//   wrong      one byte of the requested bytes is wrong
//   short, long  one byte too few, or one too many
//   much       additional windows of 1 MiB, up to 63 windows
//   gone       windows that cannot be read
//   silent     requests for bytes are answered too late, after 30 s
//   miscoded, mistabled  a wrong byte in a coded chunk, or in the table of the answer; plain bytes are right
//   digests, manifest, holders  random bytes as the answer to this request
// and those of a member of a swarm (hostile_member.h).
bool is_fault(std::string_view name);

std::vector<std::byte> in_windows(const PeerReply& reply);  // a copy

// The bytes of a store, served without a daemon. `lacks`: as of a store that has none. Any thread.
class StoredBytes final : public LocalBytes {
 public:
  explicit StoredBytes(Store& store, bool lacks = false) : store_(store), lacks_(lacks) {}
  Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) override;
  Result<std::vector<Digest>> digests(const ContentId& id) override;

 private:
  Store& store_;
  const bool lacks_;
};

// Any thread.
class HostileAnswers final : public PeerServer {
 public:
  HostileAnswers(Store& store, std::string fault);
  ~HostileAnswers() override { answers_.end(); }
  HostileAnswers(const HostileAnswers&) = delete;
  HostileAnswers& operator=(const HostileAnswers&) = delete;
  void receive(std::string_view node, std::span<const std::byte> request, PendingReply reply) override;
  Result<PeerReply> answer(std::string_view node, std::span<const std::byte> request) override;
  HostileMember::Heard heard() const { return member_ ? member_->heard() : HostileMember::Heard(); }

 private:
  bool concerns(const PeerRequest& asked) const;
  Result<PeerReply> spoiled(PeerReply reply) const;
  static Result<PeerReply> miscoded(PeerReply reply);

  const std::string fault_;
  StoredBytes bytes_;
  std::optional<HostileMember> member_;  // if it has a fault of one
  PeerDirectory directory_;
  PeerCoding coding_;
  PeerAnswers answers_;
};

// A transport that reports windows with wrong keys.
class NoWindows final : public conformance::TappedTransport {
 public:
  explicit NoWindows(std::unique_ptr<Transport> below) : TappedTransport(std::move(below), [](auto) { return true; }) {}
  ~NoWindows() override { end(); }
  Result<std::unique_ptr<Window>> open_window(std::span<const std::byte> memory) override;
};

}  // namespace weft::hostile
